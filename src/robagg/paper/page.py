"""An experiment's results as a Markdown page: tables, ours beside the paper's, and the orderings that hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from robagg.paper.board import Board
from robagg.paper.claims import Finding
from robagg.paper.compare import compare, list_misprints, summarise
from robagg.paper.computation import Computed
from robagg.paper.sheets import count_runs, divide, explain_bold, explain_marks, write_beside, write_differences
from robagg.report.formats import render_rows

MARKS = {True: "holds", False: "**does not hold**", None: "cannot be told yet"}


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
