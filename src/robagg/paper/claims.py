"""Orderings that the paper claims, checked on means; each says what it found, cell by cell where it fails."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import ClassVar, NamedTuple

from robagg.paper.numbers import Spot, find_name

Means = Mapping[Spot, float]
"""Mean accuracy by panel, row and column."""
SLACK = 1.0
"""Points that a comparison forgives."""
LIKE = 2.0
"""Two that are alike differ by no more points."""
FAILS = 50.0
"""A rule fails below this accuracy."""


@dataclass(frozen=True)
class Finding:
    """Whether a claim holds; None: not all of its runs are there."""

    claim: str
    holds: bool | None
    evidence: str
    strictly: bool = True
    """Whether it holds without a point's grace."""

    def __str__(self) -> str:
        fine = "holds" if self.strictly else "holds to within a point, not strictly"
        word = {True: fine, False: "does not hold", None: "cannot be said yet"}[self.holds]
        return f"{self.claim}: {word} ({self.evidence})"


class Case(NamedTuple):
    """One comparison of a claim: whether it holds, and what a reader should know of it."""

    holds: bool
    words: str = ""
    strictly: bool = True


@dataclass(frozen=True)
class Claim(ABC):
    """A sentence of the paper and where it can be seen; empty panels, columns and rows are all."""

    text: str
    panels: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    beside: str = ""
    """Another experiment that it compares with, whose panels come with its name in front."""
    by_cell: ClassVar[bool] = False
    """Whether a comparison that fails stands, however others turn out."""

    @abstractmethod
    def compare(self, means: Means) -> Iterator[Case]:
        """Every comparison in question. KeyError: a cell is missing."""

    def check(self, means: Means, missing: Collection[Spot] = ()) -> Finding:
        """What the means say; with a cell in question among the missing, it can only have failed already."""
        try:
            cases = [*self.compare(means)]
        except KeyError as absent:
            return Finding(self.text, None, f"no run of {', '.join(filter(None, absent.args[0]))}")
        if not cases:
            return Finding(self.text, None, "there are no runs to compare")
        against = [case.words for case in cases if not case.holds]
        close = [case.words for case in cases if case.holds and not case.strictly]
        evidence = f"{len(cases) - len(against)} of {len(cases)}"
        evidence += f"; not: {'; '.join(against)}" if against else ""
        evidence += f"; within a point: {'; '.join(close)}" if close else ""
        evidence += "".join(f"; {case.words}" for case in cases if case.holds and case.strictly and case.words)
        if lacking := sum(self.concerns(*spot) for spot in missing):
            lost = self.by_cell and bool(against)
            return Finding(self.text, False if lost else None, f"so far {evidence}; cells without a run: {lacking}")
        return Finding(self.text, not against, evidence, strictly=not close)

    def concerns(self, panel: str, row: str, column: str) -> bool:
        """Whether it is about this cell."""
        return (not self.panels or panel in self.panels) and (not self.columns or column in self.columns)

    def columns_of(self, means: Means) -> dict[tuple[str, str], dict[str, float]]:
        """The means of all rows, by panel and column in question."""
        found: dict[tuple[str, str], dict[str, float]] = {}
        for (panel, row, column), value in means.items():
            if Claim.concerns(self, panel, row, column):
                found.setdefault((panel, column), {})[row] = value
        return found


@dataclass(frozen=True)
class Best(Claim):
    """One of the rows is at the top of each column, to within a point."""

    rows: tuple[str, ...] = ("TQ",)
    by_cell: ClassVar[bool] = True

    def compare(self, means: Means) -> Iterator[Case]:
        for (panel, column), values in self.columns_of(means).items():
            yield from self.rank(_place(panel, column), values)

    def rank(self, place: str, values: Mapping[str, float]) -> Iterator[Case]:
        """Who is above the rows, and whether by more than a point; nothing where nobody else is there."""
        own = [value for row, value in values.items() if find_name(row) in self.rows]
        rivals = {row: value for row, value in values.items() if find_name(row) not in self.rows}
        if own and rivals:
            top = max(rivals, key=lambda row: rivals[row])
            words = f"{place} {top} {rivals[top]:.1f} against {max(own):.1f}" if rivals[top] > max(own) else ""
            yield Case(rivals[top] <= max(own) + SLACK, words, strictly=not words)


@dataclass(frozen=True)
class BestWorst(Best):
    """The row whose least mean over the columns is the greatest."""

    by_cell: ClassVar[bool] = False

    def compare(self, means: Means) -> Iterator[Case]:
        worst: dict[str, dict[str, float]] = {}
        for (panel, _), values in self.columns_of(means).items():
            least = worst.setdefault(panel, {})
            least |= {row: min(value, least.get(row, value)) for row, value in values.items()}
        for panel, values in worst.items():
            yield from self.rank(panel, values)


@dataclass(frozen=True)
class Fails(Claim):
    """Rows end below an accuracy of 50; no rows given: the mean over all but TQ does."""

    def concerns(self, panel: str, row: str, column: str) -> bool:
        return super().concerns(panel, row, column) and (row in self.rows if self.rows else row != "TQ")

    def compare(self, means: Means) -> Iterator[Case]:
        for (panel, column), values in self.columns_of(means).items():
            if self.rows:
                ends = {row: means[panel, row, column] for row in self.rows}
            else:
                others = [value for row, value in values.items() if row != "TQ"]
                ends = {"the others": fmean(others)} if others else {}
            for row, value in ends.items():
                yield Case(value < FAILS, "" if value < FAILS else f"{_place(panel, column)} {row} {value:.1f}")


@dataclass(frozen=True)
class Alike(Claim):
    """Two rows differ by no more than 2 points in each column."""

    by_cell: ClassVar[bool] = True

    def compare(self, means: Means) -> Iterator[Case]:
        one, other = self.rows
        for panel, column in self.columns_of(means):
            a, b = means[panel, one, column], means[panel, other, column]
            alike = abs(a - b) <= LIKE
            yield Case(alike, "" if alike else f"{_place(panel, column)} {one} {a:.1f}, {other} {b:.1f}")


@dataclass(frozen=True)
class Falls(Claim):
    """From one end of the columns (or of the panels) to the other a row loses; no rows given: every row.

    A rise in between is forgiven, since single runs scatter; of more than a point, it is said with the row's numbers.
    """

    along: str = "columns"

    def concerns(self, panel: str, row: str, column: str) -> bool:
        return super().concerns(panel, row, column) and (not self.rows or row in self.rows)

    def compare(self, means: Means) -> Iterator[Case]:
        lines: dict[tuple[str, str], list[float]] = {}
        for (panel, row, column), value in means.items():
            if self.concerns(panel, row, column):
                lines.setdefault((column if self.along == "panels" else panel, row), []).append(value)
        for (_, row), line in lines.items():
            if len(line) < 2:
                continue
            falls = line[-1] < line[0]
            uneven = any(after > before + SLACK for before, after in pairwise(line))
            steps = f"not steadily: {row} {', '.join(f'{value:.1f}' for value in line)}" if uneven else ""
            yield Case(falls, steps if falls else f"{row} {line[0]:.1f} to {line[-1]:.1f}")


@dataclass(frozen=True)
class Lower(Claim):
    """Every row is lower than in the same cell of the experiment beside."""

    by_cell: ClassVar[bool] = True

    def compare(self, means: Means) -> Iterator[Case]:
        for (panel, row, column), value in means.items():
            if not panel.startswith(f"{self.beside} "):
                other = means[f"{self.beside} {panel}", row, column]
                lower = value < other
                yield Case(lower, "" if lower else f"{_place(panel, column)} {row} {other:.1f} to {value:.1f}")


@dataclass(frozen=True)
class Helps(Claim):
    """Rows gain on average over those of the panel alone."""

    def concerns(self, panel: str, row: str, column: str) -> bool:
        compared = panel == "alone" and (not self.columns or column in self.columns)
        return compared or super().concerns(panel, row, column)

    def compare(self, means: Means) -> Iterator[Case]:
        for (panel, column), values in self.columns_of(means).items():
            gain = fmean(value - means["alone", row, column] for row, value in values.items())
            yield Case(gain > 0, "" if gain > 0 else f"{_place(panel, column)} {gain:+.1f}")


def _place(panel: str, column: str) -> str:
    return f"{panel} {column}".strip()
