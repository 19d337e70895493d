"""IPM: inner product manipulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from robagg._core.checks import read_number
from robagg.attacks.base import Attack, State, View


@dataclass(frozen=True)
class IPM(Attack):
    """Send the honest mean turned round and stretched.

    x_k = -c0 * mean,    c0 = 3 (n - f) / f

    With the formula's c0 the plain mean of all rows is -2 (n - f)/n times the honest mean: training climbs.

    ByzFL's `InnerProductManipulation(tau)` is the same with c0 = tau, 2 unless told.

    Args:
        c0: the strength; None: by the formula.

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

    aliases: ClassVar[tuple[str, ...]] = ("innerproductmanipulation",)

    c0: float | None = None

    def __post_init__(self) -> None:
        if self.c0 is not None:
            object.__setattr__(self, "c0", read_number("c0", self.c0))

    def strength(self, n: int, f: int) -> float:
        """The c0 in force: the one given, or the formula's (0 where nobody is Byzantine)."""
        if self.c0 is not None:
            return self.c0
        return 3 * (n - f) / f if f else 0.0

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        return view.send(view.mean * -self.strength(view.n, view.f)), state

    def describe(self, n: int, f: int) -> str:
        return f"c0 = {self.strength(n, f):.3g} {'from the formula' if self.c0 is None else 'as given'}"
