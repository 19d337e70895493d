"""NonFinite: rows of NaN and infinity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from robagg._core.alias import Alias
from robagg.attacks.base import Attack, State, View

_VALUES = {
    "mixed": (math.nan, math.inf, -math.inf),
    "nan": (math.nan,),
    "inf": (math.inf,),
    "-inf": (-math.inf,),
}


@dataclass(frozen=True)
class NonFinite(Attack):
    """Send NaN or infinity in every coordinate: one such row ends a run that averages.

    x_k = NaN, +Inf or -Inf in turn

    A rule has to reject such rows; what a crashed or overflowing client sends looks the same.
    ByzFL's `Inf` is a name for it with value="inf".

    Args:
        value: "nan", "inf" or "-inf" for all clients, or "mixed": dealt to them in turn.

    Example:
        >>> import torch
        >>> from robagg.attacks import NonFinite, View
        >>> NonFinite().craft(View(torch.ones(4, 1), None, n=7, f=3), {})[0].flatten()
        tensor([nan, inf, -inf])

    References:
        Blanchard, El Mhamdi, Guerraoui, Stainer. Machine learning with adversaries: Byzantine tolerant gradient
        descent. NeurIPS 2017. arXiv:1703.02757 (a Byzantine client may send any vector).
    """

    aliases: ClassVar[tuple[str, ...]] = (Alias("Inf", value="inf"),)

    value: str = "mixed"

    def __post_init__(self) -> None:
        if self.value not in _VALUES:
            raise ValueError(f"value must be one of {', '.join(_VALUES)}, got {self.value!r}")

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        sent = view.allot()
        values = _VALUES[self.value]
        for row, k in zip(sent, view.who, strict=True):
            row.fill_(values[k % len(values)])
        return sent, state

    def describe(self, n: int, f: int) -> str:
        return "NaN, +Inf and -Inf in turn" if self.value == "mixed" else f"{self.value} in every coordinate"
