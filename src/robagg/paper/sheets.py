"""A board as tables of words: for the terminal, for Markdown and for LaTeX."""

from __future__ import annotations

from dataclasses import dataclass

from robagg.paper.board import Board
from robagg.paper.claim import Spot
from robagg.paper.compare import Pair, compare, find_paper_worst
from robagg.report.tables import Cell

WORST = "worst case"


@dataclass(frozen=True)
class Sheet:
    """One table: rows by columns, each a spot of the board."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    panel: str | None
    """None: the columns are the panels, for experiments that have a curve in each."""

    def spot(self, row: str, column: str) -> Spot:
        return (column, row, "") if self.panel is None else (self.panel, row, column)


def divide(board: Board) -> list[Sheet]:
    """The board's tables: one a panel, or one for all where a panel holds one curve a row."""
    if board.experiment.kind != "curves":
        return [Sheet(p, tuple(board.rows(p)), tuple(board.columns(p)), p) for p in board.panels]
    rows = tuple(dict.fromkeys(row for panel in board.panels for row in board.rows(panel)))
    return [Sheet("after the last round", rows, tuple(board.panels), None)] if rows else []


def tell_cell(cell: Cell | None, *, digits: int = 2, sign: str = " ± ") -> str:
    """Mean and deviation of a cell; what is not there is a dash.

    >>> tell_cell(Cell((96.0, 97.0))), tell_cell(Cell((0.0,), diverged=1)), tell_cell(None)
    ('96.50 ± 0.71', 'diverged', '-')
    """
    if cell is None or cell.word:
        return "-" if cell is None else cell.word
    spread = "" if cell.deviation is None else f"{sign}{cell.deviation:.{digits}f}"
    return f"{cell.mean:.{digits}f}{spread}{'†' if cell.diverged else ''}{'‡' if cell.failed else ''}"


def tell_beside(board: Board, sheet: Sheet, *, digits: int = 2, gap: str = " ", bold: str = "**") -> list[list[str]]:
    """A line a row: each cell with the paper's in brackets, and the true worst case; the best one is bold."""
    pairs = compare(board)
    best = board.find_best_worst(sheet.panel) if board.by_attack and sheet.panel is not None else []
    lines = []
    for row in sheet.rows:
        line = [row]
        for column in sheet.columns:
            spot = sheet.spot(row, column)
            text = tell_cell(board.cells.get(spot), digits=digits, sign=" ± " if digits > 1 else "±")
            line.append(text + (f"{gap}({_paper(pairs[spot], digits)})" if spot in pairs else ""))
        if board.by_attack and sheet.panel is not None:
            text, paper = tell_worst(board, sheet.panel, row, digits), find_paper_worst(board, sheet.panel, row)
            text = f"{bold}{text}{bold}" if row in best else text
            line.append(text + ("" if paper is None else f"{gap}({paper:.{digits}f})"))
        lines.append(line)
    return lines


def tell_worst(board: Board, panel: str, row: str, digits: int = 2) -> str:
    """The least mean of a row."""
    found = board.find_worst(panel, row)
    return "-" if found is None else board.cells[panel, row, found[0]].word or f"{found[1]:.{digits}f}"


def tell_differences(board: Board, sheet: Sheet) -> list[list[str]]:
    """A line a row: ours less the paper's; bold where it is more than two of the paper's deviations and a point."""
    pairs = compare(board)
    lines = []
    for row in sheet.rows:
        found = [pairs.get(sheet.spot(row, column)) for column in sheet.columns]
        told = ["-" if p is None else f"{p.difference:+.2f}" if p.near else f"**{p.difference:+.2f}**" for p in found]
        lines.append([row, *told])
    return lines


def head_of(board: Board, sheet: Sheet) -> list[str]:
    return ["rule", *sheet.columns, *([WORST] if board.by_attack and sheet.panel is not None else [])]


def name_column(board: Board, sheet: Sheet) -> str:
    """What the columns of a sheet are, for a title: nothing where their names say it."""
    if board.experiment.columns in ("attack", ""):
        return ""
    if board.experiment.columns == "f and rho":
        return "columns are rho" if (sheet.panel or "").startswith("f=") else "columns are f"
    return f"columns are {board.experiment.columns}"


def tell_counts(board: Board) -> str:
    """How much of it is there.

    A cell with fewer runs than seeds is shown with those it has.
    """
    told = f"{board.found} runs." if board.found == board.wanted else f"{board.found} of {board.wanted} runs are there."
    return told + (f" No runs of: {'; '.join(board.absent)}." if board.absent else "")


def tell_bold(board: Board) -> str:
    """That the best worst case is bold, where one is: not while a row lacks runs."""
    found = board.by_attack and any(board.find_best_worst(panel) for panel in board.panels)
    return " The best worst case is bold." if found else ""


def tell_marks(board: Board) -> list[str]:
    """What the marks at numbers mean, of those that there are."""
    counted = [cell for cell in board.cells.values() if not cell.word]
    marks = {
        "† Some seeds diverged and count as 0.": any(c.diverged for c in counted),
        "‡ Some seeds failed and are not in the mean.": any(c.failed for c in counted),
    }
    return [mark for mark, there in marks.items() if there]


def _paper(pair: Pair, digits: int) -> str:
    # In a terminal's narrow cells the paper's deviation has no room.
    return f"{pair.paper:.{digits}f} ± {pair.deviation:.{digits}f}" if digits > 1 else f"{pair.paper:.{digits}f}"
