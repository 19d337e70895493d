"""GA: Gaussian noise about the honest mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from robagg.attacks.base import Attack, State, View
from robagg.attacks.strength import read_strength


@dataclass(frozen=True)
class GA(Attack):
    """Send the honest mean with large noise, drawn afresh for each client and each round.

    x_k = mean + sqrt(variance) * N(0, I)

    ByzFL's `Gaussian` is accepted as a name for it; that one draws about zero, with variance 1 by default, and all
    its clients send the same draw.

    Args:
        variance: of the noise in each coordinate.

    Example:
        >>> import torch
        >>> from robagg.attacks import GA, View
        >>> view = View(torch.ones(4, 3), None, n=6, f=2, generator=torch.Generator().manual_seed(0))
        >>> sent, _ = GA(variance=1e-6).craft(view, {})
        >>> sent.round(decimals=1)
        tensor([[1., 1., 1.],
                [1., 1., 1.]])

    References:
        Li, Xu, Chen, Giannakis, Ling. RSA: Byzantine-robust stochastic aggregation methods for distributed learning
        from heterogeneous datasets. AAAI 2019. arXiv:1811.03761.
    """

    aliases: ClassVar[tuple[str, ...]] = ("gaussian", "gaussianattack")

    variance: float = 30.0

    def __post_init__(self) -> None:
        read_strength(self, "variance", positive=True)

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        sent = view.allot().normal_(0.0, math.sqrt(self.variance), generator=view.generator)
        return sent.add_(view.mean), state

    def describe(self, n: int, f: int) -> str:
        return f"noise of variance {self.variance:g} about the honest mean"
