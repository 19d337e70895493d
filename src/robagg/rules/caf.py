"""CAF: a filter that weighs rows down along the direction in which they vary most, and needs no bound on that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from robagg._core.filtering import filter_rows
from robagg._core.outcome import Weights
from robagg._core.rule import GramRule
from robagg._core.sketch import Sketch
from robagg._core.tolerance import F


@dataclass(frozen=True)
class CAF(GramRule):
    """The covariance-bound agnostic filter.

    Begins with weights `c_i = 1`, or the clients' votes. While their sum is above n-2f, with `mu` the weighted mean and
    `v` the direction of the largest variance `lambda` about it,

        c_i <- c_i (1 - t_i / max_j t_j),    t_i = <x_i - mu, v>^2,    the maximum over rows that have weight left

    and the value is the weighted mean of the step with the least `lambda`. f = 0 gives the mean. Each step takes at
    least one row's weight away, so there are 2f steps at most. Where several directions have the largest variance,
    `t_i` is the squared length of the row's part in all of them, up to a factor that the maximum takes out.

    Args:
        f: how many rows may be Byzantine (a number, a share, or None for the most that n allows).

    Example:
        >>> x = torch.tensor([[1.0], [1.1], [0.9], [1.0], [50.0]])
        >>> CAF(f=1)(x)
        tensor([1.0001])

    References:
        Allouah, Guerraoui, Stephan: Towards Trustworthy Federated Learning with Untrusted Participants, ICML 2025,
        arXiv:2505.01874.
    """

    f: F = None
    takes_weights: ClassVar[bool] = True

    def weights(self, sketch: Sketch) -> Weights:
        return filter_rows(sketch)
