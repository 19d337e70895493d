"""Truncated quadratic loss: rows within tau pull alike, rows beyond it not at all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor

from robagg._core.iterative import IterativeRule, estimate_tau
from robagg._core.outcome import Pull
from robagg._core.registry import REVISED
from robagg._core.sketch import Sketch
from robagg._core.tolerance import F


@dataclass(frozen=True)
class TQ(IterativeRule):
    """Minimiser of a truncated quadratic loss, from the coordinate-wise median.

    Minimises `sum_i phi(|x_i - v|)` with `phi(r) = r^2/2` up to tau and constant beyond, by

        v <- v + (1/n) sum_i 1[|x_i - v| <= tau] (x_i - v),    tau^2 = (n-f)/f (|v - m|^2 + V)

    with m the coordinate-wise median and V the sum of the squared MADs. A row beyond tau has no part in the value,
    however far it is; f = 0 gives the mean. Where no row lies within tau the value stays the median.

    Args:
        f: how many rows may be Byzantine (a number, a share, or None for the most that n allows).
        iterations: steps of the loop.
        floor: behind a pre-aggregator that lets a row into several (NNM), whether V is no less than what mixing leaves
            of the middle row's squared distance; False: the paper's tau, which is 0 where most mixed rows coincide.

    Example:
        >>> x = torch.tensor([[1.0], [1.1], [0.9], [1.0], [50.0]])
        >>> TQ(f=1)(x)
        tensor([1.])

    References:
        Wang, Sheng, Werner, So, Song, Xu: Enhanced Byzantine-Robust Federated Learning via Truncated-Quadratic Loss
        for Heterogeneous Data.
    """

    f: F = None
    takes_weights: ClassVar[bool] = True
    iterations: int = 10
    floor: bool = field(default=True, kw_only=True, metadata=REVISED)
    kernel: ClassVar[str | None] = "tq"
    needs_median: ClassVar[bool] = True

    def pull(self, sketch: Sketch, c: Tensor, squared: Tensor) -> Pull:
        tau2 = estimate_tau(sketch, c)
        inside = squared <= tau2 + sketch.slack(c)
        return Pull(sketch.count(inside.double()) / sketch.total, tau2.sqrt(), ~inside)
