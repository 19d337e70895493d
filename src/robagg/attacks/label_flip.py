"""LF: labels flipped in its own data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from robagg.attacks.base import Attack, State, View


@dataclass(frozen=True)
class LF(Attack):
    """Send its own stochastic gradient, without momentum, on reversed labels.

    y -> C - 1 - y for C classes,    x_k = grad_k

    ByzFL's `LabelFlipping` is accepted as a name for it; that one flips the labels of the honest clients' own batches
    and all its clients send the mean of the gradients on these.

    Example:
        >>> import torch
        >>> from robagg.attacks import LF, View
        >>> LF().poison(torch.zeros(3, 1), torch.tensor([0, 1, 9]), classes=10, k=0)[1]
        tensor([9, 8, 0])
        >>> LF().craft(View(torch.ones(2, 2), torch.tensor([[3.0, -4.0]]), n=3, f=1), {})[0]
        tensor([[ 3., -4.]])

    References:
        Allouah, Farhadkhani, Guerraoui, Gupta, Pinot, Stephan. Fixing by mixing: a recipe for optimal Byzantine ML
        under heterogeneity. AISTATS 2023. arXiv:2302.01772.
        Karimireddy, He, Jaggi. Byzantine-robust learning on heterogeneous datasets via bucketing. ICLR 2022.
        arXiv:2006.09365.
    """

    aliases: ClassVar[tuple[str, ...]] = ("labelflip", "labelflipping")

    def wants_gradient(self, k: int) -> bool:
        return True

    def poison(self, x: Tensor, y: Tensor, *, classes: int, k: int) -> tuple[Tensor, Tensor]:
        if y.is_floating_point() or y.is_complex():
            raise ValueError(f"labels must be integers, got {y.dtype}")
        if y.numel() and not 0 <= int(y.min()) <= int(y.max()) < classes:
            raise ValueError(f"labels must be from 0 to {classes - 1}, got {int(y.min())} to {int(y.max())}")
        return x, classes - 1 - y

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        return view.require_own(self), state

    def describe(self, n: int, f: int) -> str:
        return "its own gradient on labels C - 1 - y, without momentum"
