"""Arithmetic mean: what robust rules replace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from robagg._core.checks import read_positive
from robagg._core.outcome import Outcome
from robagg._core.passes import Passes
from robagg._core.rule import Rule
from robagg._core.tolerance import F


@dataclass(frozen=True)
class Mean(Rule):
    """The mean of the rows, or their weighted mean with every weight capped. One Byzantine row can move it anywhere.

    Args:
        f: how many rows may be Byzantine; used only to judge how many broken rows can be borne.
        max_weight: the largest share a row may get from `weights`, where the call does not say (1/n is always allowed).

    Example:
        >>> Mean()(torch.tensor([[1.0], [2.0], [6.0]]))
        tensor([3.])
        >>> Mean(max_weight=0.5)(torch.tensor([[1.0], [2.0], [6.0]]), weights=[1, 1, 10**12])
        tensor([3.7500])

    References:
        McMahan, Moore, Ramage, Hampson, Aguera y Arcas: Communication-Efficient Learning of Deep Networks from
        Decentralized Data, AISTATS 2017, arXiv:1602.05629.
    """

    f: F = None
    takes_weights: ClassVar[bool] = True
    max_weight: float = 0.1
    aliases: ClassVar[tuple[str, ...]] = ("Average",)
    tolerates: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        read_positive(self, "max_weight")

    def solve(self, passes: Passes, f: int, shares: Tensor | None) -> Outcome:
        c = torch.ones(passes.n, dtype=torch.float64, device=passes.device) if passes.votes is None else passes.votes
        c = torch.nn.functional.pad(c.double(), (0, len(passes.anchors)))
        # The sum first: it is exact where the numbers are short, and a third of each is not. What streams rows, or has
        # some of their columns, hands values on as they are combined.
        whole = type(passes).combine is Passes.combine
        values = passes.combine(c if whole else c / passes.total)
        values = [value.div_(passes.total) for value in values] if whole else values
        return Outcome(values, passes.through(c)[: passes.sent] / passes.total, passes.alarm)
