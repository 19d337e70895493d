"""Meamed: per coordinate, the mean of the values about the median."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from robagg._core.outcome import Outcome
from robagg._core.passes import Passes
from robagg._core.rule import Rule
from robagg._core.tolerance import F
from robagg.kernels.nearest import average_nearest


@dataclass(frozen=True)
class Meamed(Rule):
    """Per coordinate, the mean of the n-f values nearest to the median.

    Args:
        f: how many rows may be Byzantine (a number, a share, or None for the most that n allows).

    Example:
        >>> Meamed(f=1)(torch.tensor([[1.0], [2.0], [3.0], [90.0]]))
        tensor([2.])

    References:
        Xie, Koyejo, Gupta: Generalized Byzantine-tolerant SGD, 2018, arXiv:1802.10116.
    """

    f: F = None
    takes_weights: ClassVar[bool] = True

    def solve(self, passes: Passes, f: int, shares: Tensor | None) -> Outcome:
        return average_middle(passes, passes.total - f)


def average_middle(passes: Passes, count: int) -> Outcome:
    """Per coordinate the mean of the `count` values nearest to the median."""
    check_whole(passes)
    mix = None if passes.matrix is None else passes.matrix[: passes.n, : passes.sent].contiguous()
    values = []
    counts = torch.zeros(passes.n, dtype=torch.float64, device=passes.device)
    for rows in passes.leaves:
        value, held, alarm = average_nearest(rows, count, mix=mix, votes=passes.votes, compute=passes.compute(rows))
        passes.raise_alarm(alarm | ~torch.isfinite(value.sum()))  # finite rows may be mixed to what is not
        values.append(value)
        counts += held
    total = counts.sum()
    part = torch.where(total > 0, counts / total, 1 / passes.n)
    return Outcome(values, part if mix is None else part @ mix, passes.alarm)


def check_whole(passes: Passes) -> None:
    """Refuse rows that are streamed, or of which other ranks have columns: there is no such pass over these."""
    if type(passes).combine is not Passes.combine:
        raise ValueError(
            "Meamed, Bulyan, SignGuard, and CTMA about a rule that sorts must have whole rows in memory, got parts"
        )
