"""Tables as text: for the terminal, Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from robagg.lab.console import align
from robagg.report.tables import Cell, Table

FORMATS = ("terminal", "markdown", "latex", "csv")


def render(tables: Sequence[Table], form: str = "terminal", *, worst: bool | None = None, digits: int = 2) -> str:
    """Tables as text, each with what its marks mean below.

    Args:
        tables: what `tabulate` made.
        form: terminal, markdown, latex (booktabs) or csv (one line per cell, for all tables at once).
        worst: a column with the worst case; None: where columns are attacks.
        digits: behind the point.

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
    return "\n\n".join(_render(table, form, worst, digits) for table in tables)


def render_rows(title: str, head: list[str], lines: list[list[str]], form: str) -> str:
    """Texts in rows under a head, for the terminal, Markdown or LaTeX."""
    return {"terminal": align, "markdown": _draw, "latex": _typeset}[form](title, head, lines)


def _render(table: Table, form: str, worst: bool | None, digits: int) -> str:
    least = table.axes[1] == "attack" if worst is None else worst
    best = {
        column: max((c.mean or 0.0 for (_, k), c in table.cells.items() if k == column and not c.failed), default=None)
        for column in table.columns
    }
    head = [table.axes[0], *(_label(column, table.axes[1]) for column in table.columns), *(["worst"] if least else [])]
    lines = []
    for row in table.rows:
        line = [_label(row, table.axes[0])]
        for column in table.columns:
            cell = table.cells.get((row, column))
            sound = cell is not None and not cell.failed and not cell.word and cell.mean == best[column]
            bold = form != "terminal" and len(table.rows) > 1 and sound
            line.append(_format_cell(cell, digits, form, bold))
        if least:
            cell = table.find_worst(row)
            whole = all(_is_known(table.cells.get((row, column))) for column in table.columns)
            text = _format_cell(cell, digits, form, False, spread=False)
            line.append(text if whole or cell is None or cell.word else f"{text}*")
        lines.append(line)
    return "\n".join(
        [render_rows(table.title, head, lines, form), *(_comment(note, form) for note in _explain(table, least))]
    )


def _format_cell(cell: Cell | None, digits: int, form: str, bold: bool, spread: bool = True) -> str:
    if cell is None or cell.word:
        return "-" if cell is None else cell.word
    sign = r"$\pm$" if form == "latex" else "±"
    more = f" {sign} {cell.deviation:.{digits}f}" if spread and cell.deviation is not None else ""
    text = f"{cell.mean:.{digits}f}{more}"
    text = (rf"\textbf{{{text}}}" if form == "latex" else f"**{text}**") if bold else text
    marks = ("†" if cell.diverged else "") + ("‡" if cell.failed else "")
    return text + (marks if form != "latex" else marks.replace("†", r"$^\dagger$").replace("‡", r"$^\ddagger$"))


def _explain(table: Table, worst: bool) -> list[str]:
    partial = [cell for cell in table.cells.values() if not cell.word]
    missing = not all(_is_known(table.cells.get((row, column))) for row in table.rows for column in table.columns)
    notes = ["† some seeds diverged and count as 0"] if any(c.diverged for c in partial) else []
    notes += ["‡ some seeds failed and are not in the mean"] if any(c.failed for c in partial) else []
    return notes + (["* of the cells there are; some have no result yet"] if missing and worst else [])


def _is_known(cell: Cell | None) -> bool:
    return cell is not None and bool(cell.accuracies) and not cell.failed


def _label(value: object, axis: str) -> str:
    """A row's or a column's name; a setting that a record does not name is the task's, and some splits have no rho."""
    return str(value) if value is not None else "-" if axis == "rho" else "default"


def _comment(note: str, form: str) -> str:
    plain = note.replace("*", r"\*", 1)  # Markdown would take it for a list's bullet
    return {"terminal": note, "markdown": f"\n{plain}", "latex": f"% {note}"}[form]


def _draw(title: str, head: list[str], lines: list[list[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    drawn = [f"| {' | '.join(text.replace('|', chr(92) + '|') for text in row)} |" for row in rows]
    return "\n".join(([f"**{title}**", ""] if title else []) + drawn)


def _typeset(title: str, head: list[str], lines: list[list[str]]) -> str:
    def escape(text: str) -> str:
        return text.replace("_", r"\_").replace("%", r"\%").replace("#", r"\#").replace(">>", r"$\gg$")

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


def _list_cells(tables: Sequence[Table]) -> str:
    """One line per cell under one head, so that a spreadsheet can turn it as it likes."""
    names = list(dict.fromkeys(name for table in tables for name, _ in table.group))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*names, *(tables[0].axes if tables else ()), "mean", "std", "seeds", "diverged", "failed"])
    for table in tables:
        group = dict(table.group)
        for (row, column), cell in table.cells.items():
            spread = [cell.mean, cell.deviation, len(cell.accuracies), cell.diverged, cell.failed]
            writer.writerow([*(group.get(name) for name in names), row, column, *spread])
    return text.getvalue().rstrip()
