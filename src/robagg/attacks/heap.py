"""Heap: Byzantine rows close together, but no two of them alike."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from robagg.attacks.along import Along
from robagg.attacks.base import State, View
from robagg.attacks.strength import read_strength


@dataclass(frozen=True)
class Heap(Along):
    """Stand near each other at a distance from the honest mean, apart by just so much that no two rows coincide.

    x_k = mean + distance s u + jitter own_k,    s^2 = (1/h) sum_i |x_i - mean|^2

    with the unit vector u along minus the honest mean, minus the standard deviations of the coordinates, or minus the
    signs of the mean, and a vector of its own for each client (see `Jittered`). A rule under which rows that coincide
    share one vote, such as CAF from shared votes, counts these one by one; along u they pull together all the same.

    Args:
        along: "mean", "std" or "sign".
        jitter: how far each client moves from the common point by a vector of its own, in honest spreads s.
        distance: of the common point from the honest mean, in honest spreads.

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

    def __post_init__(self) -> None:
        super().__post_init__()
        read_strength(self, "distance")

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        return self.shake(view, view.send(self.leave(view, self.distance * view.spread)), state), state

    def describe(self, n: int, f: int) -> str:
        return f"{self.distance:g} honest spreads from the mean along {self.along}{self.describe_jitter()}"
