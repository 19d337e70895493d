"""Orderings that the paper claims, checked on means; each says what it found, cell by cell where it fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import ClassVar

from robagg.paper.claim import Claim, Judged, Means, name_beside
from robagg.paper.numbers import find_name

SLACK = 1.0
"""Points that a comparison forgives."""
LIKE = 2.0
"""Two that are alike differ by no more points."""
FAILS = 50.0
"""A rule fails below this accuracy."""


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
    return row in rows or find_name(row) in rows


def _kin(row: str, rows: Sequence[str]) -> bool:
    """Whether a row is of the same rule as one of these."""
    return find_name(row) in map(find_name, rows)


def _spot(panel: str, column: str) -> str:
    return f"{panel} {column}".strip()
