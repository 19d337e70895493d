"""An experiment's results as a Markdown page: tables, ours beside the paper's, and the orderings that hold."""

from __future__ import annotations

from collections.abc import Sequence

from robagg.paper.board import Board
from robagg.paper.claim import Finding
from robagg.paper.compare import compare, list_misprints, summarise
from robagg.paper.sheets import (
    divide,
    head_of,
    name_column,
    tell_beside,
    tell_bold,
    tell_counts,
    tell_differences,
    tell_marks,
)
from robagg.paper.walk import Computation, Computed
from robagg.report.formats import render_rows

MARKS = {True: "holds", False: "**does not hold**", None: "cannot be told yet"}


def write_page(board: Board, pictures: Sequence[str] = ()) -> str:
    """The page of an experiment; `pictures` are file names beside it."""
    parts = [f"# {board.experiment.name}: {board.title}", tell_counts(board)]
    parts += [f"![{board.title}]({picture})" for picture in pictures]
    paired = compare(board)
    if paired:
        parts.append(f"Mean ± deviation over seeds; the paper's in brackets.{tell_bold(board)}")
    for sheet in divide(board):
        title = ", ".join(filter(None, [sheet.title, name_column(board, sheet)]))
        parts.append(render_rows(title, head_of(board, sheet), tell_beside(board, sheet, gap="<br>"), "markdown"))
    if paired:
        parts += ["## Difference to the paper", "\n".join(f"- {line}" for line in summarise(paired))]
        parts.append("Bold: more than two of the paper's deviations and a point.")
        for sheet in divide(board):
            head = ["rule", *sheet.columns]
            parts.append(render_rows(sheet.title, head, tell_differences(board, sheet), "markdown"))
    findings = board.check_claims()
    if findings:
        parts += ["## What the paper claims", list_findings(findings)]
    notes = tell_notes(board)
    if notes:
        parts += ["## Notes", "\n".join(f"- {note}" for note in notes)]
    return "\n\n".join(parts) + "\n"


def write_computed(computation: Computation, done: Computed, mark: str, pictures: Sequence[str] = ()) -> str:
    """The page of a computation without training."""
    parts = [f"# {computation.name}: {computation.title}{mark}"]
    parts += [f"![{computation.title}]({picture})" for picture in pictures]
    parts.append(render_rows("", list(done.head), done.lines, "markdown"))
    parts += ["## What the paper claims", list_findings(done.findings)]
    return "\n\n".join(parts) + "\n"


def list_findings(findings: Sequence[Finding]) -> str:
    return "\n".join(f"- {found.claim}: {MARKS[found.holds]} ({found.evidence})" for found in findings)


def tell_notes(board: Board) -> list[str]:
    """What a reader must know about the numbers."""
    notes = [*board.notes, *list_misprints(board), *tell_marks(board)]
    if any(cell.word == "diverged" for cell in board.cells.values()):
        notes.append("Where all runs diverged, figures and comparisons take the accuracy as 0.")
    return notes
