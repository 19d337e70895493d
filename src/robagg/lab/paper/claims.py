"""Orderings that the paper claims, checked on means; each says what it found, cell by cell where it fails."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean
from typing import ClassVar

Cell = tuple[str, str, str]
"""Panel, row and column."""
Means = Mapping[Cell, float]
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
        word = {True: fine, False: "does not hold", None: "cannot be told yet"}[self.holds]
        return f"{self.claim}: {word} ({self.evidence})"


@dataclass(frozen=True)
class Judged:
    """How many comparisons there were, those that fail, and those that hold by a point's grace only, in words.

    `beside` is what a reader should know all the same.
    """

    count: int
    against: list[str]
    close: list[str] = field(default_factory=list)
    beside: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Claim(ABC):
    """A sentence of the paper and where it can be seen; empty columns are all.

    `beside` names another experiment that it looks at too: the panels of that one come with its name in front.
    """

    text: str
    panels: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    beside: str = ""
    by_cell: ClassVar[bool] = False
    """Whether a comparison that fails stands, however others turn out."""

    @abstractmethod
    def judge(self, means: Means) -> Judged:
        """Every comparison in question. KeyError: a cell is missing."""

    def check(self, means: Means, missing: Collection[Cell] = ()) -> Finding:
        """What the means say; with a cell in question among the missing, it can only have failed already."""
        try:
            judged = self.judge(means)
        except KeyError as absent:
            return Finding(self.text, None, f"no run of {', '.join(filter(None, absent.args[0]))}")
        if not judged.count:
            return Finding(self.text, None, "there are no runs to compare")
        told = f"{judged.count - len(judged.against)} of {judged.count}"
        told += f"; not: {'; '.join(judged.against)}" if judged.against else ""
        told += f"; within a point: {'; '.join(judged.close)}" if judged.close else ""
        told += "".join(f"; {line}" for line in judged.beside)
        if wanting := [cell for cell in missing if self.looks_at(*cell)]:
            lost = self.by_cell and bool(judged.against)
            return Finding(self.text, False if lost else None, f"so far {told}; cells without a run: {len(wanting)}")
        return Finding(self.text, not judged.against, told, strictly=not judged.close)

    def looks_at(self, panel: str, row: str, column: str) -> bool:
        """Whether it is about this cell."""
        return (not self.panels or panel in self.panels) and (not self.columns or column in self.columns)

    def spots(self, means: Means) -> list[tuple[str, str]]:
        """(panel, column) in question."""
        return [
            *dict.fromkeys((panel, column) for panel, row, column in means if Claim.looks_at(self, panel, row, column))
        ]


@dataclass(frozen=True)
class Best(Claim):
    """One of these rows is at the top of each column, to within a point, of all that are not of the same rules."""

    rows: tuple[str, ...] = ("TQ",)
    by_cell: ClassVar[bool] = True

    def looks_at(self, panel: str, row: str, column: str) -> bool:
        return super().looks_at(panel, row, column) and (_known(row, self.rows) or not _kin(row, self.rows))

    def judge(self, means: Means) -> Judged:
        count = 0
        against: list[str] = []
        close: list[str] = []
        for panel, column in self.spots(means):
            here = {row: value for (p, row, c), value in means.items() if (p, c) == (panel, column)}
            own = [value for row, value in here.items() if _known(row, self.rows)]
            rivals = {row: value for row, value in here.items() if not _kin(row, self.rows)}
            if own and rivals:  # with nobody else there is nothing to be best of
                count += 1
                _weigh(against, close, _spot(panel, column), rivals, max(own))
        return Judged(count, against, close)


@dataclass(frozen=True)
class BestWorst(Claim):
    """The row whose least mean over the columns is the greatest, of all that are not of the same rule."""

    row: str = "TQ"

    def looks_at(self, panel: str, row: str, column: str) -> bool:
        return super().looks_at(panel, row, column) and (row == self.row or not _kin(row, (self.row,)))

    def judge(self, means: Means) -> Judged:
        count = 0
        against: list[str] = []
        close: list[str] = []
        for panel in dict.fromkeys(panel for panel, _ in self.spots(means)):
            worst: dict[str, float] = {}
            for (p, row, _), value in means.items():
                if p == panel:
                    worst[row] = min(value, worst.get(row, value))
            rivals = {row: value for row, value in worst.items() if not _kin(row, (self.row,))}
            if self.row in worst and rivals:
                count += 1
                _weigh(against, close, panel, rivals, worst[self.row])
        return Judged(count, against, close)


@dataclass(frozen=True)
class Fails(Claim):
    """Rows end below an accuracy of 50; no rows given: the mean over all but TQ does."""

    rows: tuple[str, ...] = ()

    def looks_at(self, panel: str, row: str, column: str) -> bool:
        return super().looks_at(panel, row, column) and (row in self.rows if self.rows else row != "TQ")

    def judge(self, means: Means) -> Judged:
        count = 0
        against: list[str] = []
        for panel, column in self.spots(means):
            if self.rows:
                told = {row: means[panel, row, column] for row in self.rows}
            else:
                others = [v for (p, r, c), v in means.items() if (p, c) == (panel, column) and r != "TQ"]
                told = {"the others": fmean(others)} if others else {}
            count += len(told)
            against += [f"{_spot(panel, column)} {row} {value:.1f}" for row, value in told.items() if value >= FAILS]
        return Judged(count, against)


@dataclass(frozen=True)
class Alike(Claim):
    """Two rows differ by no more than 2 points in each column."""

    pairs: tuple[tuple[str, str], ...] = ()
    by_cell: ClassVar[bool] = True

    def judge(self, means: Means) -> Judged:
        count = 0
        against: list[str] = []
        for panel, column in self.spots(means):
            for one, other in self.pairs:
                a, b = means[panel, one, column], means[panel, other, column]
                count += 1
                if abs(a - b) > LIKE:
                    against.append(f"{_spot(panel, column)} {one} {a:.1f}, {other} {b:.1f}")
        return Judged(count, against)


@dataclass(frozen=True)
class Falls(Claim):
    """From one end of the columns (or of the panels) to the other a row loses; no rows given: every row.

    A row that rises between the ends, by more than a point, is told with its numbers.
    """

    rows: tuple[str, ...] = ()
    along: str = "columns"

    def looks_at(self, panel: str, row: str, column: str) -> bool:
        return super().looks_at(panel, row, column) and (not self.rows or row in self.rows)

    def judge(self, means: Means) -> Judged:
        lines: dict[tuple[str, str], list[float]] = {}
        spots = self.spots(means)
        for (panel, row, column), value in means.items():
            if (panel, column) in spots and (not self.rows or row in self.rows):
                lines.setdefault((column if self.along == "panels" else panel, row), []).append(value)
        against = [f"{row} {line[0]:.1f} to {line[-1]:.1f}" for (_, row), line in lines.items() if not _falls(line)]
        uneven = [
            f"not steadily: {row} {', '.join(f'{value:.1f}' for value in line)}"
            for (_, row), line in lines.items()
            if _falls(line) and any(after > before + SLACK for before, after in pairwise(line))
        ]
        return Judged(sum(len(line) > 1 for line in lines.values()), against, beside=uneven)


@dataclass(frozen=True)
class Lower(Claim):
    """Every row is lower than in the same cell of the experiment beside."""

    by_cell: ClassVar[bool] = True

    def judge(self, means: Means) -> Judged:
        own = {spot: value for spot, value in means.items() if not spot[0].startswith(f"{self.beside} ")}
        lines = {spot: (means[name_beside(self.beside, spot[0]), *spot[1:]], value) for spot, value in own.items()}
        against = [
            f"{_spot(panel, column)} {row} {line[0]:.1f} to {line[1]:.1f}"
            for (panel, row, column), line in lines.items()
            if not _falls(line)
        ]
        return Judged(len(lines), against)


@dataclass(frozen=True)
class Helps(Claim):
    """Rows gain on average over those of another panel; `helps` false: they do not."""

    over: str = "alone"
    helps: bool = True

    def looks_at(self, panel: str, row: str, column: str) -> bool:
        compared = panel == self.over and (not self.columns or column in self.columns)
        return compared or super().looks_at(panel, row, column)

    def judge(self, means: Means) -> Judged:
        spots, against = self.spots(means), []
        for panel, column in spots:
            here = {row: value for (p, row, c), value in means.items() if (p, c) == (panel, column)}
            gain = fmean(value - means[self.over, row, column] for row, value in here.items())
            if (gain > 0) != self.helps:
                against.append(f"{_spot(panel, column)} {gain:+.1f}")
        return Judged(len(spots), against)


def name_beside(experiment: str, panel: str) -> str:
    """What a panel of another experiment is called among the means of this one."""
    return f"{experiment} {panel}"


def _weigh(against: list[str], close: list[str], place: str, values: Mapping[str, float], own: float) -> None:
    """Note who is above `own`, and whether by more than a point."""
    top = max(values, key=lambda row: values[row])
    if values[top] > own:
        told = f"{place} {top} {values[top]:.1f} against {own:.1f}"
        (against if values[top] > own + SLACK else close).append(told)


def _falls(line: Sequence[float]) -> bool:
    """Lower at the end than at the beginning; a rise in between is forgiven, since single runs scatter."""
    return len(line) < 2 or line[-1] < line[0]


def _known(row: str, rows: Sequence[str]) -> bool:
    return row in rows or _rule(row) in rows


def _kin(row: str, rows: Sequence[str]) -> bool:
    """Whether a row is of the same rule as one of these."""
    return _rule(row) in map(_rule, rows)


def _rule(row: str) -> str:
    """The rule of a row such as "MCA (median)"."""
    return row.split(" (")[0]


def _spot(panel: str, column: str) -> str:
    return f"{panel} {column}".strip()
