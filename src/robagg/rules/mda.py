"""MDA: the rows of least diameter, averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from robagg._core.choosing import settle
from robagg._core.outcome import Weights
from robagg._core.rule import GramRule
from robagg._core.sketch import Sketch
from robagg._core.tolerance import F

MOST = 60
"""Rows that are searched."""


@dataclass(frozen=True)
class MDA(GramRule):
    """Minimum diameter averaging: the mean of the n-f rows whose two farthest are nearest. Ties: the first such rows.

    The search is exact for up to 60 rows, and beyond that it refuses. Nothing is enumerated: for a diameter D, those
    are such rows when no two are farther apart than D; whether f rows can be left out so that none are is asked for
    ever fewer D.

    Args:
        f: how many rows may be Byzantine (a number, a share, or None for the most that n allows).

    Example:
        >>> MDA(f=1)(torch.tensor([[1.0], [2.0], [3.0], [50.0]]))
        tensor([2.])

    References:
        El Mhamdi, Guerraoui, Rouault: The Hidden Vulnerability of Distributed Learning in Byzantium, ICML 2018,
        arXiv:1802.07927. Rousseeuw: Multivariate Estimation with High Breakdown Point, 1985.
    """

    maps_well: ClassVar[bool] = False
    captures: ClassVar[bool] = False
    f: F = None

    def weights(self, sketch: Sketch) -> Weights:
        if sketch.n > MOST:
            raise ValueError(f"MDA: n must be at most {MOST}, to be searched, got {sketch.n}")
        kept = find_tightest(settle(sketch).pairwise().tolist(), sketch.f)
        share = torch.zeros(sketch.n, dtype=torch.float64, device="cpu")
        share[kept] = 1 / len(kept)
        return Weights(sketch.on_rows(share.to(sketch.gram.device)))


def find_tightest(distances: Sequence[Sequence[float]], f: int) -> list[int]:
    """The first n-f rows, by their distances (n, n), with the least largest distance between any two."""
    n = len(distances)
    everyone = (1 << n) - 1
    lengths = sorted({0.0, *(d for i, row in enumerate(distances) for d in row[:i])})
    lo, hi = 0, len(lengths) - 1
    while lo < hi:
        middle = (lo + hi) // 2
        lo, hi = (lo, middle) if can_part(_far(distances, lengths[middle]), everyone, f) else (middle + 1, hi)
    far, left = _far(distances, lengths[lo]), everyone
    kept: list[int] = []
    for i in range(n):  # a row is kept where those far from it can be left out, and enough of the others with them
        without = left & ~far[i]
        if len(kept) < n - f and left >> i & 1 and can_part(far, without, f - (n - without.bit_count())):
            kept, left = [*kept, i], without
        else:
            left &= ~(1 << i)
    return kept


def _far(distances: Sequence[Sequence[float]], length: float) -> list[int]:
    """For each row the bits of those farther from it than a length."""
    return [sum(1 << j for j, d in enumerate(row) if d > length and j != i) for i, row in enumerate(distances)]


def can_part(far: Sequence[int], left: int, most: int) -> bool:
    """Whether of the rows `left` (bits) at most `most` can be left out so that no two of the others are far."""
    while True:
        if most < 0:
            return False
        degrees = {i: (far[i] & left).bit_count() for i in range(len(far)) if left >> i & 1}
        edges = sum(degrees.values()) // 2
        if edges <= most:
            return True
        top = max(degrees, key=degrees.__getitem__)
        if edges > most * degrees[top]:
            return False
        alone = next((i for i, degree in degrees.items() if degree == 1), None)
        if alone is None:
            break
        left, most = left & ~far[alone], most - 1  # who has one row far from it: that one goes
    if degrees[top] > most:
        return can_part(far, left & ~(1 << top), most - 1)
    return can_part(far, left & ~(1 << top), most - 1) or can_part(far, left & ~far[top], most - degrees[top])
