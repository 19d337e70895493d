"""What a claim of the paper is: a sentence, where it can be seen, and what our means say to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

Spot = tuple[str, str, str]
"""Panel, row and column."""
Means = Mapping[Spot, float]
"""Mean accuracy by panel, row and column."""


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

    def check(self, means: Means, missing: Collection[Spot] = ()) -> Finding:
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


def name_beside(experiment: str, panel: str) -> str:
    """What a panel of another experiment is called among the means of this one."""
    return f"{experiment} {panel}"
