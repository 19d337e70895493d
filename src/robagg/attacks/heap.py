"""Heap: Byzantine rows close together, but no two of them alike."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from robagg._core.registry import LATER
from robagg.attacks.along import Along
from robagg.attacks.base import Setup, State, View
from robagg.attacks.jittered import read_share
from robagg.attacks.strength import read_strength


@dataclass(frozen=True)
class Heap(Along):
    """Stand near each other at a distance from the honest mean, apart by just so much that no two rows coincide.

    x_k = mean + distance s u + jitter own_k,    s^2 = (1/h) sum_i |x_i - mean|^2

    with the unit vector u along minus the honest mean, minus the standard deviations of the coordinates, or minus the
    signs of the mean, and a vector of its own for each client (see `Jittered`). A rule under which rows that coincide
    share one vote, such as CAF from shared votes, counts these one by one; along u they pull together all the same.

    With a `period` the heap stands on the side of u for so many rounds, then on the other for as many. Momenta follow
    the gradients late, so that a model pushed to and fro at the right pace swings wider and wider.

    Args:
        along: "mean", "std" or "sign".
        jitter: how far each client moves from the common point by a vector of its own, in honest spreads s.
        distance: of the common point from the honest mean, in honest spreads.
        period: rounds after which the heap changes sides, 1 or more; 0: never.

    Example:
        >>> import torch
        >>> from robagg.attacks import Heap, View
        >>> honest = torch.tensor([[3.0, 0.0], [1.0, 0.0]])
        >>> Heap("mean", jitter=0.0, distance=0.5).craft(View(honest, None, n=4, f=2), {})[0]
        tensor([[1.5000, 0.0000],
                [1.5000, 0.0000]])

    References:
        Its own. Rows that hide within the honest spread: Baruch, Baruch, Goldberg. A little is enough. NeurIPS 2019.
        arXiv:1902.06156.
    """

    distance: float = 0.7
    jitter: float = field(default=0.12, kw_only=True)
    period: float = field(default=0.0, kw_only=True, metadata=LATER)

    def __post_init__(self) -> None:
        super().__post_init__()
        read_strength(self, "distance")
        read_share(self, "period")
        if 0 < self.period < 1:
            raise ValueError(f"period must be 0 or at least 1 round, got {self.period:g}")

    def start(self, setup: Setup) -> State:
        """mix (f, h): the clients' own vectors; count (): rounds so far, where the heap changes sides."""
        state = super().start(setup)
        return state | {"count": torch.zeros((), device=setup.device)} if self.period else state

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        distance = self.distance * view.spread
        if self.period:
            turns = torch.floor(state["count"] / self.period)
            distance = distance * (1 - 2 * torch.remainder(turns, 2))
            state = state | {"count": state["count"] + 1}
        return self.shake(view, view.send(self.leave(view, distance)), state), state

    def describe(self, n: int, f: int) -> str:
        turns = f", on the other side every {self.period:g} rounds" if self.period else ""
        return f"{self.distance:g} honest spreads from the mean along {self.along}{turns}{self.describe_jitter()}"
