"""Columns shared out over ranks: each passes over its own, and what the rule sees is summed over all of them.

The n x n work is done by every rank on the same numbers, so that all decide alike. A rank must learn what others met:
rows that are not finite show in the sum of the Gram matrices, and where no sketch is made one flag goes around.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from robagg._core.leaf import find_largest
from robagg._core.outcome import Outcome
from robagg._core.passes import Passes
from robagg._core.sketch import Gathered, gather
from robagg._core.stack import Stack


class Ranks(Protocol):
    """All ranks that hold columns of the same rows. Each method is called by all of them, and all get the same."""

    def add(self, numbers: Tensor) -> Tensor:
        """The sums over all ranks, maybe in the place of what was given."""

    def find_most(self, numbers: Tensor) -> Tensor:
        """The largest of all ranks, maybe in the place of what was given."""

    def pool(self, n: int, broken: Mapping[int, str]) -> dict[int, str]:
        """Which of n rows are broken on some rank, and why."""


@dataclass(frozen=True, kw_only=True)
class SharedStack(Stack):
    """The columns of one rank."""

    ranks: Ranks
    repeated: frozenset[int] = frozenset()
    """Leaves that another rank holds too and counts: here they are combined, but not counted."""
    faults: Mapping[int, str] = field(default_factory=dict)
    """Why rows that hold NaN in the place of what was sent are broken."""

    def open_passes(self, anchors: dict[str, Sequence[Tensor] | None], **options: Any) -> Passes:
        return SharedPasses(self, self.leaves, anchors, **options)

    def broken_rows(self) -> dict[int, str]:
        found = super().broken_rows()
        return self.ranks.pool(self.n, {row: self.faults.get(row, reason) for row, reason in found.items()})

    def find_sizes(self) -> list[float] | None:
        wide = any(rows[0].dtype == torch.float64 for rows in self.leaves)
        own = [float(wide), *(max(find_largest(rows[k]) for rows in self.leaves) for k in range(len(self.kept)))]
        some, *sizes = self.ranks.find_most(torch.tensor(own, dtype=torch.float64, device=self.device)).tolist()
        return sizes if some else None

    def all_hold(self, holds: bool) -> bool:
        """Whether it holds on every rank."""
        return not bool(self.ranks.find_most(torch.tensor(float(not holds), device=self.device)))

    def counted(self) -> SharedStack:
        """The same with those leaves alone that count here."""
        stay = tuple(leaf for k, leaf in enumerate(self.leaves) if k not in self.repeated)
        return replace(self, leaves=stay, repeated=frozenset())


class SharedPasses(Passes):
    """The passes over a rank's columns, which find what those over all columns would."""

    def __init__(self, stack: SharedStack, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.stack = stack
        self._own_alarm = False
        """Whether the alarm may be set on this rank and not on others."""
        self._sound = False
        """Whether the rows are finite on every rank, unless the alarm is set on all of them."""

    def _gather(
        self, mix: Tensor | None, votes: Tensor | None, spares: Sequence[Tensor], floor: Tensor | None = None
    ) -> Gathered:
        if floor is not None:  # V was shared out over the columns of this rank alone
            every = self.stack.ranks.add(torch.tensor([float(self.columns)], dtype=torch.float64, device=self.device))
            floor = floor * (max(self.columns, 1) / max(float(every), 1))
        medians, spread, gram, square, coarse, columns = self._gather_own(mix, votes, spares, floor)
        if self._own_alarm:  # nobody must go on with what is broken here alone
            spread = torch.where(self.alarm, torch.nan, spread)
        rest = [spread, spread.new_full((), float(coarse == torch.float32)), *([] if square is None else [square])]
        total = self.stack.ranks.add(torch.cat([gram.flatten(), torch.stack(rest)]))
        size = gram.numel()
        gram, spread, single = total[:size].view_as(gram), total[size], total[size + 1]
        self._own_alarm, self._sound = False, not self.guarded
        gram = torch.where(torch.isfinite(spread), gram, torch.nan)
        coarse = torch.float32 if bool(single > 0) else torch.float64
        return Gathered(medians, spread, gram, None if square is None else total[size + 2], coarse, columns)

    def _gather_own(
        self, mix: Tensor | None, votes: Tensor | None, spares: Sequence[Tensor], floor: Tensor | None
    ) -> Gathered:
        """What another rank counts comes to nothing here, but where it is not finite it shows."""
        again = self.stack.repeated
        if not again:
            return super()._gather(mix, votes, spares, floor)
        medians: dict[int, Tensor] = {}
        parts: list[Gathered] = []
        for factor, which in ((1.0, [k for k in range(len(self.leaves)) if k not in again]), (0.0, sorted(again))):
            if which:
                points = [None if point is None else [point[k] for k in which] for point in self.anchors.values()]
                leaves, taken = [self.leaves[k] for k in which], [spares[k] for k in which] if spares else []
                found = gather(leaves, points, self.compute, mix, votes, taken, floor)
                medians.update(zip(which, found.medians, strict=True))
                square = None if found.square is None else factor * found.square
                spread, gram = factor * found.spread, factor * found.gram
                parts.append(Gathered([], spread, gram, square, found.coarse, factor * found.columns))
        squares = [part.square for part in parts if part.square is not None]
        return Gathered(
            [medians[k] for k in range(len(medians))],
            sum((part.spread for part in parts[1:]), parts[0].spread),
            sum((part.gram for part in parts[1:]), parts[0].gram),
            sum(squares[1:], squares[0]) if squares else None,
            min((part.coarse for part in parts), key=lambda dtype: dtype.itemsize),
            sum(part.columns for part in parts),
        )

    def _count(self, lo: int, hi: int) -> Tensor:
        whole, self.leaves = self.leaves, self.stack.counted().leaves
        counts = super()._count(lo, hi)
        self.leaves = whole
        return self.stack.ranks.add(counts)

    def raise_alarm(self, alarm: Tensor) -> None:
        super().raise_alarm(alarm)
        self._own_alarm = True

    def combine(self, coefficients: Tensor, medians: Sequence[Tensor] | None = None) -> list[Tensor]:
        """As for all columns. Where rows are finite on every rank, only rounding can leave the range of the dtype.

        What it takes beyond is put back on the edge, so that no rank need ask whether another has met it.
        """
        before, self._alarm = self.alarm, None
        values = super().combine(coefficients, medians)
        met, self._alarm = self.alarm, before
        if not self._sound:
            self.raise_alarm(met)
        elif bool(met):
            for value in values:
                limit = torch.finfo(value.dtype).max
                value.clamp_(-limit, limit)
        return values

    def agree(self, alarm: Tensor) -> Tensor:
        return self.stack.ranks.find_most(alarm.float()) > 0

    def settle(self, outcome: Outcome) -> Outcome:
        """The outcome with an alarm that is set on all ranks or on none."""
        return replace(outcome, alarm=self.agree(outcome.alarm)) if self._own_alarm or self.guarded else outcome
