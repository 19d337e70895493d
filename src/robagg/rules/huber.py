"""Huber loss: rows beyond tau pull with the force of one at tau."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor

from robagg._core.iterative import IterativeRule, estimate_tau
from robagg._core.outcome import Pull, Treatment
from robagg._core.registry import REVISED
from robagg._core.sketch import Sketch
from robagg._core.tolerance import F


@dataclass(frozen=True)
class Huber(IterativeRule):
    """Minimiser of the Huber loss, from the coordinate-wise median, with the same tau as TQ.

        v <- v + (1/n) sum_i (x_i - v) min(1, tau/|x_i - v|),    tau^2 = (n-f)/f (|v - m|^2 + V)

    For a given tau and start this is centered clipping (`CC`): one update rule.

    Args:
        f: how many rows may be Byzantine (a number, a share, or None for the most that n allows).
        iterations: steps of the loop.
        floor: behind a pre-aggregator that lets a row into several (NNM), whether V is no less than what mixing leaves
            of the middle row's squared distance; False: the paper's tau, which is 0 where most mixed rows coincide.

    Example:
        >>> x = torch.tensor([[1.0], [1.1], [0.9], [1.0], [50.0]])
        >>> bool(Huber(f=1)(x) < 1.1)
        True

    References:
        Huber: Robust Estimation of a Location Parameter, Annals of Mathematical Statistics, 1964.
        Karimireddy, He, Jaggi: Learning from History for Byzantine Robust Optimization, ICML 2021, arXiv:2012.10333.
    """

    f: F = None
    takes_weights: ClassVar[bool] = True
    iterations: int = 10
    floor: bool = field(default=True, kw_only=True, metadata=REVISED)
    kernel: ClassVar[str | None] = "huber"
    needs_median: ClassVar[bool] = True
    treatment: ClassVar[Treatment] = Treatment.CLIPPED

    def pull(self, sketch: Sketch, c: Tensor, squared: Tensor) -> Pull:
        return clip(sketch, squared, estimate_tau(sketch, c).sqrt(), sketch.slack(c))


def clip(sketch: Sketch, squared: Tensor, tau: Tensor, slack: Tensor) -> Pull:
    """The pull min(1, tau/r)/n of rows at squared distances r^2 (n,), times their votes."""
    outside = squared > tau.square() + slack
    # Dividing only where a row is outside keeps 0/0 and inf/inf out.
    strength = (tau / squared.sqrt().where(outside, 1.0)).where(outside, 1.0)
    return Pull(sketch.count(strength) / sketch.total, tau, outside)
