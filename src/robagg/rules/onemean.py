"""OneMean: the rows nearest to the one with the closest company, averaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from robagg._core.choosing import add_distances, pick_least
from robagg._core.outcome import Weights
from robagg._core.rule import GramRule
from robagg._core.sketch import Sketch
from robagg._core.tolerance import F


@dataclass(frozen=True)
class OneMean(GramRule):
    """1-mean clustering with outliers: the row with the least sum of squared distances to its n-f nearest; their mean.

    Each row counts among its own nearest, so it is the row that NNM makes of the one that Krum takes. With client
    weights the nearest n-f votes count, its own first. Ties: the lower index.

    Args:
        f: how many rows may be Byzantine (a number, a share, or None for the most that n allows).

    Example:
        >>> OneMean(f=1)(torch.tensor([[1.0], [2.0], [3.0], [50.0]]))
        tensor([2.])

    References:
        Yi, You, Liu, Liu, Huang, Zhang, Ye: Near-Optimal Resilient Aggregation Rules for Distributed Learning Using
        1-Center and 1-Mean Clustering with Outliers, AAAI 2024, arXiv:2312.12835.
    """

    f: F = None
    takes_weights: ClassVar[bool] = True

    def weights(self, sketch: Sketch) -> Weights:
        return Weights(pick_least(add_distances(sketch)) @ sketch.nearest_means())
