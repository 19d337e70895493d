"""Tables as text: for the terminal, Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from robagg.lab.console import align
from robagg.report.names import label
from robagg.report.tables import Cell, Table

FORMATS = ("terminal", "markdown", "latex", "csv")


def render(
    tables: Sequence[Table],
    form: str = "terminal",
    *,
    worst: bool | None = None,
    digits: int = 2,
    interval: bool = False,
) -> str:
    """Tables as text, each with what its marks mean below.

    Args:
        tables: what `tabulate` made.
        form: terminal, markdown, latex (booktabs) or csv (one line per cell, for all tables at once).
        worst: a column with the worst case; None: where columns are attacks.
        digits: behind the point.
        interval: whether the 95 % interval of the mean stands behind it, from three seeds on, or else the deviation.

    Example:
        >>> from robagg.report.tables import tabulate
        >>> records = [{"method": m, "attack": a, "seed": s, "f": 2, "accuracy": v, "diverged": None, "status": "ok"}
        ...            for m, a, s, v in [("tq", "ipm", 0, 90.0), ("tq", "ipm", 1, 92.0), ("tq", "lf", 0, 80.0)]]
        >>> print(render(tabulate(records)))
        f=2
        method  ipm           lf     worst
        tq      91.00 ± 1.41  80.00  80.00
    """
    if form not in FORMATS:
        raise ValueError(f"the format must be one of {', '.join(FORMATS)}, got {form!r}")
    if form == "csv":
        return _list_cells(tables)
    return "\n\n".join(_render(table, form, worst, digits, interval) for table in tables)


def render_rows(title: str, head: list[str], lines: list[list[str]], form: str) -> str:
    """Texts in rows under a head, for the terminal, Markdown or LaTeX."""
    return {"terminal": align, "markdown": _draw, "latex": _typeset}[form](title, head, lines)


def _render(table: Table, form: str, worst: bool | None, digits: int, interval: bool) -> str:
    least = table.axes[1] == "attack" if worst is None else worst
    best = {
        column: max((c.merit for (_, k), c in table.cells.items() if k == column and not c.failed), default=None)
        for column in table.columns
    }
    worsts = [cell.merit for row in table.rows if (cell := table.find_worst(row)) and _is_whole(table, row)]
    group, display = dict(table.group), form == "latex"
    titles = [label(column, table.axes[1], group, display=display) for column in table.columns]
    head = [table.axes[0], *titles, *(["worst"] if least else [])]
    lines = []
    for row in table.rows:
        line = [label(row, table.axes[0], group, display=display)]
        for column in table.columns:
            cell = table.cells.get((row, column))
            sound = cell is not None and not cell.failed and not cell.word and cell.merit == best[column]
            bold = form != "terminal" and len(table.rows) > 1 and sound
            half = None if cell is None else cell.half if interval else cell.deviation
            line.append(_format_cell(cell, digits, form, bold, half))
        if least:
            cell = table.find_worst(row)
            whole = _is_whole(table, row)
            best_worst = whole and cell is not None and not cell.word and cell.merit == max(worsts)
            bold = form != "terminal" and len(table.rows) > 1 and best_worst
            text = _format_cell(cell, digits, form, bold)
            line.append(text if whole or cell is None or cell.word else f"{text}*")
        lines.append(line)
    notes = [_comment(note, form) for note in _explain(table, least, interval)]
    return "\n".join([render_rows(table.title, head, lines, form), *notes])


def _format_cell(cell: Cell | None, digits: int, form: str, bold: bool, spread: float | None = None) -> str:
    if cell is None or cell.word:
        return "-" if cell is None else cell.word
    sign = r"$\pm$" if form == "latex" else "±"
    more = f" {sign} {spread:.{digits}f}" if spread is not None else ""
    text = f"{cell.mean:.{digits}f}{more}"
    text = (rf"\textbf{{{text}}}" if form == "latex" else f"**{text}**") if bold else text
    marks = ("†" if cell.diverged else "") + ("‡" if cell.failed else "")
    return text + (marks if form != "latex" else marks.replace("†", r"$^\dagger$").replace("‡", r"$^\ddagger$"))


def _explain(table: Table, worst: bool, interval: bool) -> list[str]:
    partial = [cell for cell in table.cells.values() if not cell.word]
    empty = [c for r in table.rows for k in table.columns if not _is_known(c := table.cells.get((r, k)))]
    reasons = ["some failed"] * any(c is not None and c.failed for c in empty)
    reasons += ["some have no result yet"] * any(c is None for c in empty)
    reasons += ["some have no such number"] * any(c is not None and not c.failed for c in empty)
    notes = ["± half of the 95 % interval of the mean, by Student's t, from three seeds on"] if interval else []
    lost = dict.fromkeys(f"{c.measure.lost:g}" for c in partial if c.diverged)
    notes += [f"† some seeds diverged and count as {' or '.join(lost)}"] if lost else []
    notes += ["‡ some seeds failed and are not in the mean"] if any(c.failed for c in partial) else []
    return notes + ([f"* of the cells there are; {' and '.join(reasons)}"] if reasons and worst else [])


def _is_whole(table: Table, row: Any) -> bool:
    """Whether every cell of a row has a result of all its runs."""
    return all(_is_known(table.cells.get((row, column))) for column in table.columns)


def _is_known(cell: Cell | None) -> bool:
    return cell is not None and bool(cell.values) and not cell.failed


def _comment(note: str, form: str) -> str:
    plain = note.replace("*", r"\*", 1)  # Markdown would take it for a list's bullet
    return {"terminal": note, "markdown": f"\n{plain}", "latex": f"% {note}"}[form]


def _draw(title: str, head: list[str], lines: list[list[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    drawn = [f"| {' | '.join(text.replace('|', chr(92) + '|') for text in row)} |" for row in rows]
    return "\n".join(([f"**{title}**", ""] if title else []) + drawn)


def _typeset(title: str, head: list[str], lines: list[list[str]]) -> str:
    body = [rf"{escape(line[0])} & {' & '.join(line[1:])} \\" for line in lines]
    return "\n".join(
        [
            f"% {title}",
            rf"\begin{{tabular}}{{l{'c' * (len(head) - 1)}}}",
            r"\toprule",
            rf"{' & '.join(map(escape, head))} \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def escape(text: str) -> str:
    """A text in which LaTeX finds no command.

    >>> print(escape("nnm >> my_rule{a & 50%}"))
    nnm $\\gg$ my\\_rule\\{a \\& 50\\%\\}
    """
    commands = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    commands |= {sign: f"\\{sign}" for sign in "&%$#_{}"}
    return "".join(commands.get(sign, sign) for sign in text).replace(">>", r"$\gg$").replace("<", r"$<$")


def _list_cells(tables: Sequence[Table]) -> str:
    """One line per cell under one head, so that a spreadsheet can turn it as it likes."""
    names = list(dict.fromkeys(name for table in tables for name, _ in table.group))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        [*names, *(tables[0].axes if tables else ()), "mean", "std", "half_interval", "seeds", "diverged", "failed"]
    )
    for table in tables:
        group = dict(table.group)
        for (row, column), cell in table.cells.items():
            spread = [cell.mean, cell.deviation, cell.half, len(cell.values), cell.diverged, cell.failed]
            writer.writerow([*(group.get(name) for name in names), row, column, *spread])
    return text.getvalue().rstrip()
