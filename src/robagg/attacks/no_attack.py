"""No attack: the control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from robagg.attacks.base import Attack, State, View


@dataclass(frozen=True)
class NoAttack(Attack):
    """Copy the honest rows in turn: a control that carries no harmful signal.

    x_k = row (k mod h) of the honest rows

    It keeps n and f as they are under an attack, so that a rule's own cost shows: what it loses by cutting rows that
    nobody poisoned. For a run without Byzantine clients set f=0. Its name is `none`. ByzFL's `NoAttack` sends
    nothing instead.

    Example:
        >>> import torch
        >>> from robagg.attacks import NoAttack, View
        >>> NoAttack().craft(View(torch.tensor([[1.0], [2.0], [3.0]]), None, n=5, f=2), {})[0]
        tensor([[1.],
                [2.]])

    References:
        None: it is the control of every experiment.
    """

    aliases: ClassVar[tuple[str, ...]] = ("noattack",)

    @classmethod
    def name(cls) -> str:
        return "none"

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        sent = view.allot()
        for row, k in zip(sent, view.who, strict=True):
            row.copy_(view.honest[k % len(view.honest)])
        return sent, state

    def describe(self, n: int, f: int) -> str:
        return "copies of honest rows"
