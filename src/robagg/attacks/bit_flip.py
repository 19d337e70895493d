"""BF: the bits of its own gradient's signs flipped."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor

from robagg._core.registry import LATER
from robagg.attacks.base import Attack, Setup, State, View
from robagg.attacks.own import average, read_momentum
from robagg.attacks.strength import read_strength


@dataclass(frozen=True)
class BF(Attack):
    """Send minus its own stochastic gradient, without momentum unless one is given.

    x_k = -scale g_k,    g_k <- momentum g_k + (1 - momentum) grad_k, from 0

    Without momentum the rows are as noisy as single batches, where honest rows are averaged over rounds.

    Args:
        scale: how many times the gradient.
        momentum: of the Byzantine clients, from 0 to below 1; with the honest ones' own their rows move as slowly.

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

    scale: float = field(default=1.0, metadata=LATER)
    momentum: float = field(default=0.0, metadata=LATER)

    def __post_init__(self) -> None:
        read_strength(self, "scale", positive=True)
        read_momentum(self)

    def start(self, setup: Setup) -> State:
        """own (f, d): the momenta; nothing without momentum."""
        return {"own": setup.zeros(setup.f, setup.d)} if self.momentum else {}

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        rows = view.require_own(self)
        if self.momentum:
            rows, kept = average(view, rows, state["own"], 1 - self.momentum)
            state = {"own": kept}
        return rows.neg() if self.scale == 1 else rows * -self.scale, state

    def describe(self, n: int, f: int) -> str:
        times = "" if self.scale == 1 else f"{self.scale:g} times "
        memory = f"with momentum {self.momentum:g}" if self.momentum else "without momentum"
        return f"minus {times}its own gradient, {memory}"
