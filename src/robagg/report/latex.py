"""A board as one LaTeX table in the paper's layout: booktabs, a block of rules a panel, the best worst case bold."""

from __future__ import annotations

import re

from robagg.report.board import Board
from robagg.report.sheets import Sheet, divide, tell_cell

_SIGNS = {"\\": r"\textbackslash{}", "_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "†": r"$^\dagger$"}
_SIGNS |= {"‡": r"$^\ddagger$", ">>": r"$\gg$", "<=": r"$\le$", ">=": r"$\ge$", "[": "{[}", "]": "{]}"}


def write_latex(board: Board) -> str:
    """A `table*` to be read by a document that uses booktabs."""
    sheets = divide(board)
    one = len({sheet.columns for sheet in sheets}) == 1 or board.by_attack
    columns = list(dict.fromkeys(column for sheet in sheets for column in sheet.columns))
    tables = [_typeset(board, sheets, columns)] if one else [_typeset(board, [s], [*s.columns]) for s in sheets]
    seeds = any(cell.deviation is not None for cell in board.cells.values())
    spread = ", mean and standard deviation over seeds" if seeds else ""
    over = "" if board.experiment.columns in ("attack", "") else f" Columns are {board.experiment.columns}."
    notes = "".join(f" {_escape(note.rstrip('.'))}." for note in board.notes)
    return "\n".join(
        [
            f"% {board.experiment.name}: {board.title}",
            r"% \usepackage{booktabs}",
            r"\begin{table*}[t]",
            r"\centering",
            rf"\caption{{{_escape(board.title)}. In percent{spread}.{_escape(over)}{notes}}}",
            rf"\label{{tab:{board.name}}}",
            r"\vspace{4pt}",
            r"\small",
            r"\setlength{\tabcolsep}{3pt}",
            "\n\n\\medskip\n\n".join(tables),
            r"\end{table*}",
            "",
        ]
    )


def _typeset(board: Board, sheets: list[Sheet], columns: list[str]) -> str:
    """The tabular: the panel's label stands at the first row of its block."""
    labelled = len(sheets) > 1 or sheets[0].panel is not None
    worst = board.by_attack
    head = [*([""] if labelled else []), "Rule", *map(_escape, columns), *(["Worst case"] if worst else [])]
    width = len(columns) + worst
    shape = f"@{{}}{'l' if labelled else ''}l{'c' * width}@{{}}"
    lines = [rf"\begin{{tabular}}{{{shape}}}", r"\toprule", " & ".join(head) + r" \\"]
    for sheet in sheets:
        lines.append(r"\midrule")
        best = board.find_best_worst(sheet.panel) if worst and sheet.panel is not None else []
        for k, row in enumerate(sheet.rows):
            cells = [_tell(board, sheet, row, column) for column in columns]
            if worst and sheet.panel is not None:
                cells.append(_tell_worst(board, sheet.panel, row, row in best))
            label = [_label(sheet.title) if k == 0 else ""] if labelled else []
            lines.append(" & ".join([*label, _escape(row), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _tell(board: Board, sheet: Sheet, row: str, column: str) -> str:
    text = tell_cell(board.cells.get(sheet.spot(row, column)))
    mean, sign, rest = text.partition(" ± ")
    return f"{_escape(mean)}\\,{{\\scriptsize$\\pm$\\,{_escape(rest)}}}" if sign else _escape(text).replace("-", "--")


def _tell_worst(board: Board, panel: str, row: str, best: bool) -> str:
    """The cell with the least mean, with its deviation, as the paper prints it."""
    found = board.find_worst(panel, row)
    if found is None:
        return "--"
    cell = board.cells[panel, row, found[0]]
    spread = "" if cell.deviation is None else f"\\,{{\\scriptsize$\\pm$\\,{cell.deviation:.2f}}}"
    return (rf"\textbf{{{found[1]:.2f}}}" if best else f"{found[1]:.2f}") + spread


def _label(title: str) -> str:
    r"""`f=5` and `rho=0.6` as mathematics.

    >>> _label("rho=0.6")
    '$\\rho=0.6$'
    """
    name, sign, value = title.partition("=")
    if sign and name in ("f", "rho"):
        letter = r"\rho" if name == "rho" else name
        return f"${letter}={value}$"
    return _escape(title)


def _escape(text: str) -> str:
    for sign, written in _SIGNS.items():
        text = text.replace(sign, written)
    text = re.sub(r"\brho\b", r"$\\rho$", text)
    text = re.sub(r"\bf(?=\)| |=|,|$)", "$f$", text)
    return text.replace("c0 =", "$c_0$ =").replace(" z =", " $z$ =")
