"""Coordinate-wise trimmed mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from robagg._core.sorted import SortedRule
from robagg._core.tolerance import F


@dataclass(frozen=True)
class TM(SortedRule):
    """Per coordinate, the mean of the n-2f values left when the f largest and the f smallest are dropped.

    Args:
        f: how many rows may be Byzantine (a number, a share, or None for the most that n allows).

    Example:
        >>> TM(f=1)(torch.tensor([[1.0], [2.0], [3.0], [90.0]]))
        tensor([2.5000])

    References:
        Yin, Chen, Kannan, Bartlett: Byzantine-Robust Distributed Learning, ICML 2018, arXiv:1803.01498.
    """

    f: F = None
    takes_weights: ClassVar[bool] = True
    aliases: ClassVar[tuple[str, ...]] = ("TrMean", "TrimmedMean")

    def kept(self, n: int, f: int) -> tuple[int, int]:
        return f, n - f
