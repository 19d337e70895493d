"""Votes: what clients count where they weigh differently, in whole numbers, and how many of them may be Byzantine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch

from robagg._core.shares import cap
from robagg._core.tolerance import F, left_of

MOST = 2**30
"""Votes in all: kernels count them in 32 bits."""


@dataclass(frozen=True)
class Votes:
    """What each row counts: a row with k votes counts as k rows that are equal."""

    given: tuple[int, ...]
    """Of all rows that were given."""
    kept: tuple[int, ...]
    """Of those that are left, in order: who is missing leaves its part to them."""

    @property
    def total(self) -> int:
        """Of the rows that are left."""
        return sum(self.kept)

    def tolerance_left(self, f: F, broken: int, joins: int = 1) -> int | None:
        """How many clients f stands for when some are broken; None where there is no quorum.

        None is the most that hold less than half, a share as many of the heaviest as hold it. With `joins`, rows stand
        for up to so many clients each: how many such rows are tolerated, if no more clients are Byzantine.
        """
        most = count_below_half(self.given)
        if f is None:
            f = most
        elif isinstance(f, float):
            sums = accumulate(sorted(self.given, reverse=True), initial=0)
            f = min(next(k for k, held in enumerate(sums) if held >= f * sum(self.given) - 1e-9), most)
        left = left_of(f, count_below_half(self.kept), broken, len(self.kept))
        return None if left is None else min(left, count_below_half(self.kept, joins))

    def outnumber(self, f: F) -> bool:
        """Whether clients that hold no more than the share f may be half of the rows."""
        lightest = sorted(self.kept)[: -(-len(self.kept) // 2)]
        return isinstance(f, float) and sum(lightest) <= math.ceil(f * self.total)

    def count_held(self, f: F, in_force: int, votes: Sequence[int]) -> int:
        """The votes that may be Byzantine: those of the heaviest rows in force, and a share's at least."""
        held = sum(sorted(votes, reverse=True)[:in_force])
        share = f if isinstance(f, float) else 0.0
        return max(held, min(math.ceil(share * self.total), (self.total - 1) // 2))


def count_below_half(votes: Sequence[int], joins: int = 1) -> int:
    """The most rows that hold less than half of the votes, whichever they are, if each stands for `joins` of these.

    >>> [count_below_half(votes) for votes in ([1] * 5, [1] * 6, [3, 1, 1, 1, 1], [3, 1, 1])]
    [2, 2, 1, 0]
    """
    held = list(accumulate(sorted(votes, reverse=True), initial=0))
    return sum(2 * part < held[-1] for part in held[::joins]) - 1


def find_limit(asked: Sequence[F], n: int, own: float | None) -> float:
    """The share that no client exceeds where nobody gave one, for the f of each stage that tolerates.

    As much as lets f clients hold at most half way between f/n and one half; where no f was given, as much as two rows,
    and no more than lets one be tolerated. A rule may have a limit of its `own`.
    """
    limits = [] if own is None else [own]
    for f in asked:
        count = 1 if f is None else f if isinstance(f, int) else min(math.ceil(f * n - 1e-9), (n - 1) // 2)
        if count:
            limits.append((count / n + 0.5) / (2 * count))
        if f is None:
            limits.append(2 / n)
    return min(limits, default=1.0)


def deal(claims: Sequence[float], limit: float) -> tuple[int, ...]:
    """Votes in proportion to claims, none with more than its limit of all, or with what all would have alike.

    Claims that are whole numbers and within the limit are the votes themselves.

    >>> deal([3.0, 1.0, 2.0], 0.5), deal([1e9, 1.0, 1.0], 0.5)
    ((3, 1, 2), (536870912, 268435456, 268435456))
    """
    total = sum(claims)
    whole = 0 < total <= MOST and all(claim == int(claim) for claim in claims)
    if whole and max(claims) <= max(limit, 1 / len(claims)) * total:
        return tuple(map(int, claims))
    shares = cap(torch.tensor(claims, dtype=torch.float64, device="cpu"), limit)
    return tuple((shares * MOST).round().long().tolist())
