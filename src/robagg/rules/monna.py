"""MoNNA: the rows nearest to one that is trusted, averaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from robagg._core.choosing import average_least
from robagg._core.outcome import Weights
from robagg._core.rule import GramRule
from robagg._core.sketch import Sketch
from robagg._core.tolerance import F


@dataclass(frozen=True)
class MoNNA(GramRule):
    """Nearest neighbour averaging: the mean of the n-f rows nearest to a row that is trusted. Ties: the lower index.

    The trusted row is the server's own, and comes with the call as `root`. Without one the coordinate-wise median
    stands in for it, and the call warns of that.

    Args:
        f: how many rows may be Byzantine (a number, a share, or None for the most that n allows).

    Example:
        >>> MoNNA(f=1)(torch.tensor([[1.0], [2.0], [9.0], [50.0]]), root=torch.tensor([1.5]))
        tensor([4.])

    References:
        Farhadkhani, Guerraoui, Gupta, Hoang, Pinot, Stephan: Robust Collaborative Learning with Linear Gradient
        Overhead, ICML 2023, arXiv:2209.10931.
    """

    f: F = None
    takes_weights: ClassVar[bool] = True
    needs_median: ClassVar[bool] = True
    anchors: ClassVar[tuple[str, ...]] = ("root",)

    def weights(self, sketch: Sketch) -> Weights:
        return average_least(sketch, sketch.squared_distances(find_root(sketch)))


def find_root(sketch: Sketch) -> Tensor:
    """Coefficients (n+a,) of the trusted row: the one that came with the call, or else the median."""
    return sketch.at("root") if "root" in sketch.anchors else sketch.centre()
