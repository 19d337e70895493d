"""An attack of your own: it sees what the honest clients send, and says what the f Byzantine clients send."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from robagg import Attack, State, View


@dataclass(frozen=True)
class Echo(Attack):
    """The k-th Byzantine client sends the k-th honest row turned round and stretched.

    Args:
        strength: by how much.
    """

    strength: float = 1.0

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        sent = view.allot()
        for row, k in zip(sent, view.who, strict=True):
            row.copy_(view.honest[k % len(view.honest)]).mul_(-self.strength)
        return sent, state
