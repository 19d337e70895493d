"""SpectralFilter: a filter that weighs rows down only while a direction stands out, and only as far as it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from robagg._core.checks import read_positive
from robagg._core.filtering import filter_rows
from robagg._core.outcome import Weights
from robagg._core.rule import GramRule
from robagg._core.sketch import Sketch
from robagg._core.tolerance import F


@dataclass(frozen=True)
class SpectralFilter(GramRule):
    """A filter that stops when no direction stands out.

    Let `s^2` be half the mean squared distance of the `h(h-1)/2` nearest pairs of rows, `h = n-f`: no more than the
    honest rows' own variance, whatever the others send. Rows that have nothing in common have `s^2 / (n-1)` of it in
    each direction; a direction stands out where they have `standout` times that,

        level = standout s^2 / (n-1)

    Begins with weights `c_i = 1`. While their sum is above n-2f and `lambda > level`, with `mu` the weighted mean and
    `v` the direction of the largest variance `lambda` about it,

        c_i <- c_i (1 - (1 - b) t_i / max_j t_j),    t_i = <x_i - mu, v>^2,    b = min(1/2, level / lambda)

    and the value is the weighted mean of the step with the least `lambda`. f = 0 gives the mean. There are 2f + 10
    steps at most. With client weights `c_i = n p_i` at first, a pair counts as much as the product of its two, and
    `1 / (n-1)` is `q / (1-q)` with `q = sum_i p_i^2`. CAF is the same with `level = 0`: it goes on though nothing
    stands out, and each step takes the whole weight of a row.

    Args:
        f: how many rows may be Byzantine (a number, a share, or None for the most that n allows).
        standout: how many times its share of the variance a direction may have.

    Example:
        >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [50.0, 50.0]])
        >>> SpectralFilter(f=1)(x)
        tensor([0.0072, 0.0072])
        >>> SpectralFilter(f=1).explain(x).reasons[4]
        'far: 70.7 from the value, 61.2 times the spread of the rows: cut'

    References:
        Diakonikolas, Kamath, Kane, Li, Moitra, Stewart: Being Robust (in High Dimensions) Can Be Practical, ICML 2017,
        arXiv:1703.00893 (filters).
        Allouah, Guerraoui, Stephan: Towards Trustworthy Federated Learning with Untrusted Participants, ICML 2025,
        arXiv:2505.01874 (CAF).
    """

    f: F = None
    takes_weights: ClassVar[bool] = True
    standout: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        read_positive(self, "standout")

    def weights(self, sketch: Sketch) -> Weights:
        return filter_rows(sketch, self.standout)
