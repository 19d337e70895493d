"""TQ with the true tau (the paper's TQ_t): it knows who is honest, so it exists for experiments only.

This file is loaded as a plugin, also in the processes that do the runs; its hash is part of their keys. It imports from
`robagg` alone, so that it need not change when the package does.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from robagg import TQ, Pull, Sketch


@dataclass(frozen=True)
class TQTrue(TQ):
    """TQ whose tau comes from the honest rows: the median is replaced by their mean, the spread by their variance.

        tau^2 = (n-f)/f (|v - xbar|^2 + Var),    Var = (1/h) sum over honest i of |x_i - xbar|^2

    Args:
        f: how many rows may be Byzantine.
        iterations: steps of the loop.
        honest: how many rows are honest, the first ones; None: all but f.

    Example:
        >>> x = torch.tensor([[1.0], [2.0], [3.0], [2.0], [50.0]])
        >>> TQTrue(f=1)(x)
        tensor([2.])

    References:
        As TQ.
    """

    honest: int | None = None

    def pull(self, sketch: Sketch, c: Tensor, squared: Tensor) -> Pull:
        tau2 = find_true_tau2(sketch, c, self.honest)
        inside = squared <= tau2 + sketch.slack(c)
        return Pull(inside.double() / sketch.n, tau2.sqrt(), ~inside)


def find_true_tau2(sketch: Sketch, c: Tensor, honest: int | None = None) -> Tensor:
    """The true tau^2 () at the point with coefficients c, all of it from the Gram matrix."""
    if sketch.f == 0:
        return torch.full_like(sketch.spread, torch.inf)
    mean = mean_of_honest(sketch, honest)
    variance = sketch.squared_distances(mean) @ mean[: sketch.n]
    return (sketch.n - sketch.f) / sketch.f * (sketch.squared_norm(c - mean) + variance)


def mean_of_honest(sketch: Sketch, honest: int | None = None) -> Tensor:
    """Coefficients (n+a,) of the mean of the first rows, which are the honest ones."""
    h = sketch.n - sketch.f if honest is None else honest
    return sketch.on_rows((torch.arange(sketch.n, device=sketch.gram.device) < h).double() / h)
