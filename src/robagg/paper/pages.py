"""A board as tables of words, for the terminal, Markdown and LaTeX, and as a page of Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from robagg.paper.board import Board
from robagg.paper.claims import Finding
from robagg.paper.compare import Pair, compare, find_paper_worst, list_misprints, summarise
from robagg.paper.experiment import Computed
from robagg.paper.numbers import Spot
from robagg.report.formats import render_rows
from robagg.report.tables import Cell

WORST = "worst case"
MARKS = {True: "holds", False: "**does not hold**", None: "cannot be said yet"}


@dataclass(frozen=True)
class Sheet:
    """One table: rows by columns, each a spot of the board."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    panel: str | None
    """None: the columns are the panels, for experiments that have a curve in each."""
    worst: bool = False
    """Whether there is a column with the worst case."""
    axis: str = ""
    """What the columns are, where their names do not say it."""

    @property
    def head(self) -> list[str]:
        return ["rule", *self.columns, *([WORST] if self.worst else [])]

    @property
    def caption(self) -> str:
        return ", ".join(filter(None, [self.title, self.axis and f"columns are {self.axis}"]))

    def spot(self, row: str, column: str) -> Spot:
        return (column, row, "") if self.panel is None else (self.panel, row, column)


def divide(board: Board) -> list[Sheet]:
    """The board's tables: one per panel, or one for all where a panel holds one curve per row."""
    if board.experiment.kind == "curves":
        rows = tuple(dict.fromkeys(row for panel in board.panels for row in board.rows(panel)))
        return [Sheet("after the last round", rows, tuple(board.panels), None)] if rows else []
    grids = [(panel, tuple(board.rows(panel)), tuple(board.columns(panel))) for panel in board.panels]
    return [Sheet(*grid, grid[0], board.by_attack, name_axis(board, grid[0])) for grid in grids]


def name_axis(board: Board, panel: str) -> str:
    """What the columns of a panel are; nothing for attacks and for columns whose names say it."""
    if board.experiment.columns == "f and rho":
        return "rho" if panel.startswith("f=") else "f"
    return "" if board.experiment.columns == "attack" else board.experiment.columns


def write_cell(cell: Cell | None, *, digits: int = 2, sign: str = " ± ", spread: bool = True) -> str:
    """Mean and deviation of a cell; what is not there is a dash.

    >>> write_cell(Cell((96.0, 97.0))), write_cell(Cell((0.0,), diverged=1)), write_cell(None)
    ('96.50 ± 0.71', 'diverged', '-')
    """
    if cell is None or cell.word:
        return "-" if cell is None else cell.word
    deviation = f"{sign}{cell.deviation:.{digits}f}" if spread and cell.deviation is not None else ""
    return f"{cell.mean:.{digits}f}{deviation}{'†' if cell.diverged else ''}{'‡' if cell.failed else ''}"


def write_beside(board: Board, sheet: Sheet, *, digits: int = 2, gap: str = " ") -> list[list[str]]:
    """Each row's cells with the paper's in brackets, and its true worst case; the best one is bold.

    With one digit, for a terminal's narrow cells, the paper's deviation is left out.
    """
    pairs = compare(board)
    best = board.find_best_worst(sheet.title) if sheet.worst else []
    lines = []
    for row in sheet.rows:
        line = [row]
        for column in sheet.columns:
            spot = sheet.spot(row, column)
            text = write_cell(board.cells.get(spot), digits=digits, sign=" ± " if digits > 1 else "±")
            if (pair := pairs.get(spot)) is not None:
                spread = f" ± {pair.deviation:.{digits}f}" if digits > 1 else ""
                text += f"{gap}({pair.paper:.{digits}f}{spread})"
            line.append(text)
        if sheet.worst:
            worst, paper = board.find_worst(sheet.title, row), find_paper_worst(board, sheet.title, row)
            text = write_cell(worst, digits=digits, spread=False)
            text = f"**{text}**" if row in best else text
            line.append(text + ("" if paper is None else f"{gap}({paper:.{digits}f})"))
        lines.append(line)
    return lines


def write_differences(board: Board, sheet: Sheet) -> list[list[str]]:
    """Each row's cells less the paper's; bold where they differ by more than two of its deviations and a point."""
    pairs = compare(board)

    def write(pair: Pair | None) -> str:
        return "-" if pair is None else f"{pair.difference:+.2f}" if pair.near else f"**{pair.difference:+.2f}**"

    return [[row, *(write(pairs.get(sheet.spot(row, column))) for column in sheet.columns)] for row in sheet.rows]


def count_runs(board: Board) -> str:
    """How much of it is there; a cell with fewer runs than seeds is shown with those it has."""
    found, wanted = board.found, board.wanted
    words = f"{found} runs." if found == wanted else f"{found} of {wanted} runs are there."
    return words + (f" No runs of: {'; '.join(board.absent)}." if board.absent else "")


def explain_bold(board: Board) -> str:
    """That the best worst case is bold, where one is: not while a row lacks runs."""
    found = board.by_attack and any(board.find_best_worst(panel) for panel in board.panels)
    return " The best worst case is bold." if found else ""


def explain_marks(board: Board) -> list[str]:
    """What the marks at numbers mean, of those that there are."""
    counted = [cell for cell in board.cells.values() if not cell.word]
    marks = {
        "† Some seeds diverged and count as 0.": any(c.diverged for c in counted),
        "‡ Some seeds failed and are not in the mean.": any(c.failed for c in counted),
    }
    return [mark for mark, there in marks.items() if there]


def write_page(board: Board, pictures: Sequence[Path] = ()) -> str:
    """The page of an experiment; `pictures` lie beside it."""
    parts = [f"# {board.experiment.name}: {board.title}", count_runs(board), *_show(board.title, pictures)]
    pairs, sheets = compare(board), divide(board)
    if pairs:
        parts.append(f"Mean ± deviation over seeds; the paper's in brackets.{explain_bold(board)}")
    for sheet in sheets:
        parts.append(render_rows(sheet.caption, sheet.head, write_beside(board, sheet, gap="<br>"), "markdown"))
    if pairs:
        parts += ["## Difference to the paper", _list(summarise(pairs))]
        parts.append("Bold: more than two of the paper's deviations and a point.")
        for sheet in sheets:
            head = ["rule", *sheet.columns]
            parts.append(render_rows(sheet.title, head, write_differences(board, sheet), "markdown"))
    if findings := board.check_claims():
        parts += ["## What the paper claims", list_findings(findings)]
    if notes := list_notes(board):
        parts += ["## Notes", _list(notes)]
    return "\n\n".join(parts) + "\n"


def write_computed(name: str, title: str, done: Computed, pictures: Sequence[Path] = ()) -> str:
    """The page of a computation without training."""
    parts = [f"# {name}: {title}", *_show(title, pictures), render_rows("", list(done.head), done.lines, "markdown")]
    parts += ["## What the paper claims", list_findings(done.findings)]
    return "\n\n".join(parts) + "\n"


def list_findings(findings: Sequence[Finding]) -> str:
    return _list([f"{found.claim}: {MARKS[found.holds]} ({found.evidence})" for found in findings])


def list_notes(board: Board) -> list[str]:
    """What a reader must know about the numbers."""
    notes = [*board.notes, *list_misprints(board), *explain_marks(board)]
    if any(cell.word == "diverged" for cell in board.cells.values()):
        notes.append("Where all runs diverged, figures and comparisons take the accuracy as 0.")
    return notes


def _list(sentences: Sequence[str]) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _show(title: str, pictures: Sequence[Path]) -> list[str]:
    return [f"![{title}]({path.name})" for path in pictures if path.suffix == ".png"]
