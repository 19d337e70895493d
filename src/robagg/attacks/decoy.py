"""Decoy: a few far rows that make the others look near."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from robagg._core.checks import read_whole
from robagg.attacks.along import Along
from robagg.attacks.base import State, View
from robagg.attacks.strength import read_strength


@dataclass(frozen=True)
class Decoy(Along):
    """Send one row far off to drag the first estimate, so that the others, on the same side, look nearest to it.

    x_k = mean + c_k s u + jitter own_k,    c_k = reach distance for the first clients, distance for the others

    with s, u and own_k as in `Heap`. It aims at rules that begin at a weighted mean and limit what a row can lose or
    gain in one step: their estimate may stay where the decoys have dragged it.

    Args:
        along: "mean", "std" or "sign".
        jitter: how far each client moves by a vector of its own, in honest spreads s.
        distance: of most Byzantine rows from the honest mean, in honest spreads.
        reach: how many times that distance the decoys go.
        decoys: how many of the clients go there.

    Example:
        >>> import torch
        >>> from robagg.attacks import Decoy, View
        >>> honest = torch.tensor([[3.0, 0.0], [1.0, 0.0]])
        >>> Decoy("mean", jitter=0.0, distance=2.0, reach=5.0).craft(View(honest, None, n=5, f=3), {})[0]
        tensor([[-8.,  0.],
                [ 0.,  0.],
                [ 0.,  0.]])

    References:
        Its own; against reweighting. Cheng, Diakonikolas, Ge. High-dimensional robust mean estimation in nearly-linear
        time. SODA 2019. arXiv:1811.09380.
    """

    distance: float = 3.0
    reach: float = 12.0
    decoys: int = 1
    jitter: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        read_strength(self, "distance")
        read_strength(self, "reach")
        read_whole(self, "decoys", 0)

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        if not len(view.who):
            return view.allot(), state
        near, far = (self.leave(view, self.distance * times * view.spread) for times in (1.0, self.reach))
        sent = torch.stack([far if k < self.decoys else near for k in view.who])
        return self.shake(view, sent, state), state

    def describe(self, n: int, f: int) -> str:
        near = f"{self.distance:g} honest spreads from the mean along {self.along}"
        return f"{near}, {self.decoys} of them {self.reach:g} times as far{self.describe_jitter()}"
