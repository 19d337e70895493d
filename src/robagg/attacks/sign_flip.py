"""SignFlip: minus the honest mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from robagg.attacks.base import Attack, State, View
from robagg.attacks.strength import read_strength


@dataclass(frozen=True)
class SignFlip(Attack):
    """Send the honest mean with the opposite sign.

    x_k = -scale * mean

    It is IPM with a strength that depends on neither n nor f; ByzFL's `SignFlipping` is the same with scale 1.

    Args:
        scale: how many times the honest mean.

    Example:
        >>> import torch
        >>> from robagg.attacks import SignFlip, View
        >>> SignFlip().craft(View(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), None, n=3, f=1), {})[0]
        tensor([[-2., -3.]])

    References:
        Allen-Zhu, Ebrahimianghazani, Li, Alistarh. Byzantine-resilient non-convex stochastic gradient descent.
        ICLR 2021. arXiv:2012.14368.
        Li, Xu, Chen, Giannakis, Ling. RSA. AAAI 2019. arXiv:1811.03761.
    """

    aliases: ClassVar[tuple[str, ...]] = ("signflipping",)

    scale: float = 1.0

    def __post_init__(self) -> None:
        read_strength(self, "scale", positive=True)

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        return view.send(view.mean * -self.scale), state

    def describe(self, n: int, f: int) -> str:
        return f"minus {self.scale:g} times the honest mean"
