"""ROP: relocated orthogonal perturbation, made against centred clipping."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from robagg.attacks.base import Setup, State, View
from robagg.attacks.jittered import Jittered
from robagg.attacks.strength import read_part, read_strength


@dataclass(frozen=True)
class ROP(Jittered):
    """Stand beside the last aggregate, where clipping does not reach, and push at a right angle, round after round.

    x_k = location a + (1 - location) mean + distance (cos(angle) r / |r| + sin(angle) p / |p|)
    r = reference a + (1 - reference) mean,    p = 1 - r <1, r> / |r|^2

    a is the last aggregate: the rule's own where it remembers one, as CC does, else the honest mean of the last round
    stands in for it (0 in the first). p is what is left of the vector of ones at a right angle to r: as r turns slowly,
    so does p, and what it adds in each round adds up.

    Args:
        distance: from the place beside which it stands; against CC the paper takes its radius.
        location: 1: the rows stand beside the last aggregate; 0: beside the honest mean.
        reference: 1: at a right angle to the last aggregate; 0: to the honest mean.
        angle: in degrees, between the push and the reference: 90 is a right angle, 180 goes against it.
        jitter: how far each client moves from that row by a vector of its own, in honest spreads (see `Jittered`).

    Example:
        >>> import torch
        >>> from robagg.attacks import ROP, View
        >>> honest = torch.tensor([[2.0, 0.0], [4.0, 0.0]])
        >>> last = torch.tensor([1.0, 0.0])
        >>> ROP().craft(View(honest, None, n=3, f=1, last=last), {"last": last})[0]
        tensor([[1., 1.]])

    References:
        Ozfatura, Ozfatura, Kupcu, Gunduz. Byzantines can also learn from history: fall of centered clipping in
        federated learning. IEEE TIFS 2024. arXiv:2208.09894.
    """

    distance: float = 1.0
    location: float = 1.0
    reference: float = 0.9
    angle: float = field(default=90.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        read_strength(self, "distance")
        read_strength(self, "angle")
        read_part(self, "location")
        read_part(self, "reference")

    def start(self, setup: Setup) -> State:
        """last (d,): the honest mean of the last round, and what the jitter needs."""
        return {"last": setup.zeros(setup.d), **super().start(setup)}

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        mean = view.mean.to(view.away.dtype)
        last = (state["last"] if view.last is None else view.last).to(mean.dtype)
        ahead = _shorten(self.reference * last + (1 - self.reference) * mean)
        # The ones at a right angle to it: of vectors along the ones themselves nothing is left.
        aside = _shorten(torch.ones_like(ahead) - ahead * ahead.sum())
        turn = math.radians(self.angle)
        place = self.location * last + (1 - self.location) * mean
        row = place + self.distance * (math.cos(turn) * ahead + math.sin(turn) * aside)
        sent = self.spread(view, row.to(view.honest.dtype), state)
        return sent, {**state, "last": view.mean.to(state["last"].dtype)}

    def describe(self, n: int, f: int) -> str:
        place = f"{self.distance:g} from the last aggregate, {self.angle:g} degrees from it"
        return place + self.describe_jitter()


def _shorten(x: Tensor) -> Tensor:
    """The same with length 1, or 0 where it has none."""
    length: Tensor = torch.linalg.vector_norm(x)
    return x / length.clamp(min=torch.finfo(x.dtype).tiny)
