"""Coordinate-wise median."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from robagg._core.sorted import SortedRule
from robagg._core.tolerance import F


@dataclass(frozen=True)
class CM(SortedRule):
    """The median of each coordinate; for even n the midpoint.

    Args:
        f: how many rows may be Byzantine; used only to judge how many broken rows can be borne.

    Example:
        >>> CM()(torch.tensor([[1.0, 5.0], [2.0, 6.0], [90.0, -7.0]]))
        tensor([2., 5.])

    References:
        Yin, Chen, Kannan, Bartlett: Byzantine-Robust Distributed Learning, ICML 2018, arXiv:1803.01498.
    """

    f: F = None
    takes_weights: ClassVar[bool] = True
    aliases: ClassVar[tuple[str, ...]] = ("Median", "CWMed")

    def kept(self, n: int, f: int) -> tuple[int, int]:
        return (n - 1) // 2, n // 2 + 1
