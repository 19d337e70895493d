"""CGE: the mean of the shortest rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from robagg._core.choosing import average_least
from robagg._core.outcome import Weights
from robagg._core.rule import GramRule
from robagg._core.sketch import Sketch
from robagg._core.tolerance import F


@dataclass(frozen=True)
class CGE(GramRule):
    """Comparative gradient elimination: the mean of the n-f shortest rows. Ties: the lower index.

    A Byzantine row that is no longer than honest ones is not dropped, wherever it points. It measures from the origin,
    so adding a constant vector to all rows does not just shift the result.

    Args:
        f: how many rows may be Byzantine (a number, a share, or None for the most that n allows).

    Example:
        >>> CGE(f=1)(torch.tensor([[1.0], [2.0], [3.0], [-50.0]]))
        tensor([2.])

    References:
        Gupta, Vaidya: Byzantine Fault-Tolerance in Decentralized Optimization under 2f-Redundancy, ACC 2021,
        arXiv:2009.14763. Gupta, Liu, Vaidya: Byzantine Fault-Tolerant Distributed Machine Learning Using Stochastic
        Gradient Descent and Norm-Based Comparative Gradient Elimination, 2020, arXiv:2008.04699.
    """

    f: F = None
    takes_weights: ClassVar[bool] = True
    anchors: ClassVar[tuple[str, ...]] = ("origin",)

    def weights(self, sketch: Sketch) -> Weights:
        origin = sketch.at("origin")  # what a pre-aggregator clipped is equally long
        return average_least(sketch, sketch.squared_distances(origin), slack=sketch.slack(origin))
