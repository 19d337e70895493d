"""IPM: inner product manipulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from robagg._core.alias import Alias
from robagg.attacks.base import State, View
from robagg.attacks.strength import ByFormula


@dataclass(frozen=True)
class IPM(ByFormula):
    """Send the honest mean reversed and scaled.

    x_k = -c0 * mean,    c0 = 3 (n - f) / f

    With the formula's c0 the plain mean of all rows is -2 (n - f)/n times the honest mean: training climbs.

    ByzFL's `InnerProductManipulation(tau=2.0)` is a name for it with c0 = tau.

    Args:
        c0: the strength; None: by the formula.
        jitter: how far each client moves from that row by a vector of its own, in honest spreads (see `Jittered`).

    Example:
        >>> import torch
        >>> from robagg.attacks import IPM, View
        >>> IPM().craft(View(torch.ones(4, 2), None, n=6, f=2), {})[0]
        tensor([[-6., -6.],
                [-6., -6.]])
        >>> IPM().describe(n=20, f=6)
        'c0 = 7 from the formula'

    References:
        Xie, Koyejo, Gupta. Fall of empires: breaking Byzantine-tolerant SGD by inner product manipulation. UAI 2019.
        arXiv:1903.03936.
    """

    aliases: ClassVar[tuple[str, ...]] = (Alias("InnerProductManipulation", {"tau": "c0"}, c0=2.0),)

    parameter: ClassVar[str] = "c0"
    c0: float | None = None

    def compute_strength(self, n: int, f: int) -> float:
        return 3 * (n - f) / f if f else 0.0  # 0 where nobody is Byzantine

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        return self.spread(view, view.mean * -self.strength(view.n, view.f), state), state
