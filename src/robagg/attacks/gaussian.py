"""GA: Gaussian noise about the honest mean."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor

from robagg._core.alias import Alias
from robagg._core.registry import LATER
from robagg.attacks.base import Attack, State, View
from robagg.attacks.strength import read_strength


@dataclass(frozen=True)
class GA(Attack):
    """Send the honest mean with large noise, drawn afresh for each client and each round.

    x_k = mean + sqrt(variance) * N(0, I)

    ByzFL's `Gaussian(mu=0.0, sigma=1.0)` is a name for it, with centre mu and variance sigma^2; all its clients send
    the same draw, ours one each.

    Args:
        variance: of the noise in each coordinate.
        centre: what each coordinate is drawn about; None: the honest mean.

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

    aliases: ClassVar[tuple[str, ...]] = (
        Alias("Gaussian", {"mu": "centre", "sigma": ("variance", lambda sigma: sigma**2)}, centre=0.0, variance=1.0),
        "gaussianattack",
    )

    variance: float = 30.0
    centre: float | None = field(default=None, metadata=LATER)

    def __post_init__(self) -> None:
        if self.centre is not None:
            read_strength(self, "centre")
        read_strength(self, "variance", positive=True)

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        sent = view.allot().normal_(0.0, math.sqrt(self.variance), generator=view.generator)
        return sent.add_(view.mean if self.centre is None else self.centre), state

    def describe(self, n: int, f: int) -> str:
        about = "the honest mean" if self.centre is None else f"{self.centre:g}"
        return f"noise of variance {self.variance:g} about {about}"
