"""OneCentre: the rows in the smallest ball about one of them, averaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from robagg._core.choosing import pick_least, reach
from robagg._core.outcome import Weights
from robagg._core.rule import GramRule
from robagg._core.sketch import Sketch
from robagg._core.tolerance import F


@dataclass(frozen=True)
class OneCentre(GramRule):
    """1-centre clustering with outliers: the row whose n-f nearest reach least far, and the mean of these.

    Each row counts among its own nearest. With client weights the nearest n-f votes count, its own first. Ties: the
    lower index.

    Args:
        f: how many rows may be Byzantine (a number, a share, or None for the most that n allows).

    Example:
        >>> OneCentre(f=1)(torch.tensor([[1.0], [2.0], [3.0], [50.0]]))
        tensor([2.])

    References:
        Yi, You, Liu, Liu, Huang, Zhang, Ye: Near-Optimal Resilient Aggregation Rules for Distributed Learning Using
        1-Center and 1-Mean Clustering with Outliers, AAAI 2024, arXiv:2312.12835.
    """

    f: F = None
    takes_weights: ClassVar[bool] = True
    aliases: ClassVar[tuple[str, ...]] = ("OneCenter",)

    def weights(self, sketch: Sketch) -> Weights:
        return Weights(pick_least(reach(sketch)) @ sketch.nearest_means())
