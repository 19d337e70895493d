"""BF: the bits of its own gradient's signs flipped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from robagg.attacks.base import Attack, State, View


@dataclass(frozen=True)
class BF(Attack):
    """Send minus its own stochastic gradient, without momentum.

    x_k = -grad_k

    Without momentum the rows are as noisy as single batches, where honest rows are averaged over rounds.

    Example:
        >>> import torch
        >>> from robagg.attacks import BF, View
        >>> BF().craft(View(torch.ones(2, 2), torch.tensor([[3.0, -4.0]]), n=3, f=1), {})[0]
        tensor([[-3.,  4.]])

    References:
        Allouah, Farhadkhani, Guerraoui, Gupta, Pinot, Stephan. Fixing by mixing: a recipe for optimal Byzantine ML
        under heterogeneity. AISTATS 2023. arXiv:2302.01772.
        Li, Xu, Chen, Giannakis, Ling. RSA. AAAI 2019. arXiv:1811.03761.
    """

    aliases: ClassVar[tuple[str, ...]] = ("bitflip", "bitflipping")

    def wants_gradient(self, k: int) -> bool:
        return True

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        return view.require_own(self).neg(), state

    def describe(self, n: int, f: int) -> str:
        return "minus its own gradient, without momentum"
