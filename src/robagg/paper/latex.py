"""A board as one LaTeX table in the paper's layout: booktabs, a block of rules per panel, the best worst case bold."""

from __future__ import annotations

import re

from robagg.paper.board import Board
from robagg.paper.pages import Sheet, count_runs, divide, explain_bold, explain_marks, write_cell
from robagg.report.tables import Cell

_SIGNS = {"\\": r"\textbackslash{}", "_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "†": r"$^\dagger$"}
_SIGNS |= {"‡": r"$^\ddagger$", ">>": r"$\gg$", "<=": r"$\le$", ">=": r"$\ge$", "[": "{[}", "]": "{]}"}
_LETTERS = {"rho": r"\rho", "f": "f", "c0": "c_0", "z": "z"}


def write_latex(board: Board) -> str:
    """A `table*` to be read by a document that uses booktabs."""
    sheets = divide(board)
    one = len({sheet.columns for sheet in sheets}) == 1 or board.by_attack
    columns = list(dict.fromkeys(column for sheet in sheets for column in sheet.columns))
    tables = [_typeset(board, sheets, columns)] if one else [_typeset(board, [s], [*s.columns]) for s in sheets]
    spread = ", mean and standard deviation over seeds" if _is_spread(board) else ""
    over = "" if board.experiment.columns in ("attack", "") else f" Columns are {board.experiment.columns}."
    notes = "".join(f" {_escape(note.rstrip('.'))}." for note in (*board.notes, *explain_marks(board)))
    return "\n".join(
        [
            f"% {board.experiment.name}: {board.title}",
            f"% {count_runs(board)} A dash stands for a cell without a run.",
            r"% \usepackage{booktabs}",
            r"\begin{table*}[t]",
            r"\centering",
            rf"\caption{{{_escape(board.title)}. In percent{spread}.{explain_bold(board)}{_escape(over)}{notes}}}",
            rf"\label{{tab:{board.name}}}",
            r"\vspace{4pt}",
            r"\small",
            rf"\setlength{{\tabcolsep}}{{{3 if _is_spread(board) else 6}pt}}",
            "\n\n\\medskip\n\n".join(tables),
            r"\end{table*}",
            "",
        ]
    )


def _typeset(board: Board, sheets: list[Sheet], columns: list[str]) -> str:
    """The tabular: the panel's label stands at the first row of its block."""
    labelled = len(sheets) > 1 or sheets[0].panel is not None
    worst = sheets[0].worst
    wide = 2 if _is_spread(board) else 1
    names = [*map(_escape, columns), *(["Worst case"] if worst else [])]
    head = [*([""] if labelled else []), "Rule", *(_span(wide, name) for name in names)]
    # The mean ends and the deviation begins at one line, so that points stand below each other.
    column = r"r@{\,}l" if wide == 2 else "r"
    shape = f"@{{}}{'l' if labelled else ''}l{column * len(names)}@{{}}"
    lines = [rf"\begin{{tabular}}{{{shape}}}", r"\toprule", " & ".join(head) + r" \\"]
    for sheet in sheets:
        lines.append(r"\midrule")
        best = board.find_best_worst(sheet.title) if worst else []
        for k, row in enumerate(sheet.rows):
            cells = [_write(board.cells.get(sheet.spot(row, column)), False, wide) for column in columns]
            if worst:
                cells.append(_write(board.find_worst(sheet.title, row), row in best, wide))
            label = [_escape(sheet.title) if k == 0 else ""] if labelled else []
            lines.append(" & ".join([*label, _escape(row), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _is_spread(board: Board) -> bool:
    """Whether there are deviations to print."""
    return any(cell.deviation is not None for cell in board.cells.values())


def _span(wide: int, text: str) -> str:
    return rf"\multicolumn{{{wide}}}{{c}}{{{text}}}"


def _write(cell: Cell | None, best: bool, wide: int) -> str:
    """Mean and deviation in columns of their own."""
    text = write_cell(cell)
    if cell is None or cell.word:
        return _span(wide, "--" if text == "-" else _escape(text))
    mean, _, rest = text.partition(" ± ")
    mean = rf"\textbf{{{_escape(mean)}}}" if best else _escape(mean)
    return mean + (f" & {_spread(_escape(rest))}" if wide == 2 else "")


def _spread(deviation: str) -> str:
    return f"{{\\scriptsize$\\pm$\\,{deviation}}}" if deviation else ""


def _escape(text: str) -> str:
    r"""Signs that LaTeX keeps to itself, and letters as mathematics.

    >>> _escape("rho=0.6, knows f_max, 5 % of f")
    '$\\rho=0.6$, knows $f_{\\max}$, 5 \\% of $f$'
    """
    for sign, written in _SIGNS.items():
        text = text.replace(sign, written)
    text = re.sub(r"\bf\\_max(=\d+)?", lambda found: rf"$f_{{\max}}{found[1] or ''}$", text)
    text = re.sub(r"(?<!\$)\b(rho\b|f(?=\)| |=|,|\.?$))(=\d+(?:\.\d+)?)?", _write_letter, text)
    return re.sub(r"\b(c0|z) = (\d[\d.]*\d|\d)", lambda found: f"${_LETTERS[found[1]]}={found[2]}$", text)


def _write_letter(found: re.Match[str]) -> str:
    return f"${_LETTERS[found[1]]}{found[2] or ''}$"
