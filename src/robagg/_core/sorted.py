"""Rules that look at each coordinate alone: its values in order, and a range of them averaged."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor

from robagg._core.contract import Attribution, read_range
from robagg._core.outcome import Outcome
from robagg._core.passes import Passes
from robagg._core.rule import Rule


class SortedRule(Rule):
    """A rule that averages, coordinate by coordinate, a range of the sorted values: one pass."""

    @abstractmethod
    def kept(self, n: int, f: int) -> tuple[int, int]:
        """The range lo..hi-1 of the n sorted values that is averaged.

        With client weights n and f count votes, each of them a value.
        """

    def solve(self, passes: Passes, f: int, shares: Tensor | None) -> Outcome:
        with Attribution(self, "kept"):
            lo, hi = read_range(self, self.kept(passes.total, f), passes.total)
        values = passes.trim(lo, hi)
        return Outcome(values, passes.shares(lo, hi) if passes.verdict else None, passes.alarm)
