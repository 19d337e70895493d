"""Geometric median by the smoothed Weiszfeld iteration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from torch import Tensor

from robagg._core.alias import Alias
from robagg._core.checks import read_positive
from robagg._core.iterative import IterativeRule
from robagg._core.outcome import Pull, Weights
from robagg._core.sketch import Sketch, middle
from robagg._core.tolerance import F

TINY = 2.0**-1000
LADDER = (64, 256, 1024, 4096, 16384)
STILL = 1e-9
"""A step that moves v by less than this part of the middle row's distance is the last."""


@dataclass(frozen=True)
class RFA(IterativeRule):
    """Geometric median: the point with the least sum of distances, by smoothed Weiszfeld steps from the origin.

        v <- sum_i w_i x_i / sum_i w_i,    w_i = 1 / max(|x_i - v|, smoothing)

    With `iterations=None` the steps go on until one moves v by less than a billionth of the middle row's distance, but
    no more than 16,384. It starts from the origin, so adding a constant vector to all rows does not just shift the
    result.

    Args:
        f: how many rows may be Byzantine; used only to judge how many broken rows can be borne.
        iterations: steps of the loop; None: until it has converged.
        smoothing: the distance below which rows weigh alike. float32 holds distances to some 3e-4 of the farthest
            row's: a smoothing below that takes float64 rows.

    Example:
        >>> x = torch.tensor([[1.0], [1.1], [0.9], [1.0], [50.0]])
        >>> bool(RFA()(x) < 1.2)
        True

    References:
        Pillutla, Kakade, Harchaoui: Robust Aggregation for Federated Learning, IEEE TSP 2022, arXiv:1912.13445.
    """

    f: F = None
    takes_weights: ClassVar[bool] = True
    iterations: int | None = 10  # type: ignore[assignment]
    smoothing: float = 0.1
    kernel: ClassVar[str | None] = "rfa"
    aliases: ClassVar[tuple[str, ...]] = (
        Alias("GeometricMedian", {"nu": "smoothing", "T": "iterations"}, iterations=3),
    )
    anchors: ClassVar[tuple[str, ...]] = ("origin",)
    length: ClassVar[str | None] = "smoothing"
    origin: ClassVar[str | None] = "origin"

    def __post_init__(self) -> None:
        if self.iterations is None:
            super(IterativeRule, self).__post_init__()
            object.__setattr__(self, "captures", False)
        else:
            super().__post_init__()
        read_positive(self, "smoothing")

    def weights(self, sketch: Sketch) -> Weights:
        if self.iterations is not None:
            return super().weights(sketch)
        for steps in LADDER:
            done = replace(self, iterations=steps).weights(sketch)
            squared = sketch.squared_distances(done.coefficients)
            further = self.pull(sketch, done.coefficients, squared).move(sketch, done.coefficients)
            if bool(sketch.squared_norm(further - done.coefficients) <= STILL**2 * middle(squared, sketch.votes)):
                break
        return done

    def pull(self, sketch: Sketch, c: Tensor, squared: Tensor) -> Pull:
        r = squared.sqrt().clamp(min=max(self.smoothing * sketch.unit, TINY))
        w = sketch.count(sketch.voting(r).min() / r)  # at most one a vote: 1/r may overflow
        return Pull(w / w.sum())
