"""ALIE: a little is enough."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar

import torch
from torch import Tensor

from robagg._core.alias import Alias
from robagg.attacks.base import State, View
from robagg.attacks.strength import ByFormula


@dataclass(frozen=True)
class ALIE(ByFormula):
    """Move the honest mean, coordinate by coordinate, as far as the honest spread can hide.

    x_k = mean - z * std,    z = Phi^-1((n - f - s) / (n - f)),    s = floor(n/2 + 1) - f

    `std` is the unbiased standard deviation over the honest rows (0 for a single row). The formula gives z <= 0 where
    few are Byzantine (n=20: f <= 2), which is hardly an attack: `describe` says so. Where half or more are Byzantine
    s is taken as 1.

    ByzFL's `ALittleIsEnough(tau=1.5)` is a name for it; that one sends mean + tau * std, the other sign: z = -tau.

    Args:
        z: the strength; None: by the formula.
        jitter: how far each client moves from that row by a vector of its own, in honest spreads (see `Jittered`).

    Example:
        >>> import torch
        >>> from robagg.attacks import ALIE, View
        >>> honest = torch.tensor([[1.0, 0.0], [2.0, 0.0], [3.0, 3.0]])
        >>> ALIE(z=1.0).craft(View(honest, None, n=4, f=1), {})[0]
        tensor([[ 1.0000, -0.7321]])
        >>> ALIE().describe(n=20, f=6)
        'z = 0.366 from the formula'

    References:
        Baruch, Baruch, Goldberg. A little is enough: circumventing defenses for distributed learning. NeurIPS 2019.
        arXiv:1902.06156.
    """

    aliases: ClassVar[tuple[str, ...]] = (Alias("ALittleIsEnough", {"tau": ("z", lambda tau: -tau)}, z=-1.5),)

    parameter: ClassVar[str] = "z"
    z: float | None = None

    def compute_strength(self, n: int, f: int) -> float:
        return hide(n, f)

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        sent = torch.sub(view.mean, deviate(view.honest, view.mean), alpha=self.strength(view.n, view.f))
        return self.spread(view, sent, state), state

    def describe(self, n: int, f: int) -> str:
        words = super().describe(n, f)
        if self.z is None and f > 0 and self.strength(n, f) <= 0:
            words += f", which is no attack: n={n}, f={f} gives z <= 0; give z to set it"
        return words


def hide(n: int, f: int) -> float:
    """How many standard deviations off a row still has enough honest ones beyond it: the formula of z."""
    h = n - f
    s = max(n // 2 + 1 - f, 1)
    # Nobody to hide behind (h = 1 or n <= 2): the spread is 0 or the formula -inf, and z means nothing.
    return NormalDist().inv_cdf((h - s) / h) if h > s else 0.0


def deviate(x: Tensor, mean: Tensor) -> Tensor:
    """(h, d), (d,) -> (d,) the unbiased standard deviation of each column, 0 for one row."""
    if len(x) == 1:
        return torch.zeros_like(mean)
    if x.device.type == "cpu":
        # Row by row: torch's own std along the rows is forty times slower on a CPU (190 ms for 14 x 1.2M, this 4 ms).
        # The squares of half precision are summed in float32: its largest number, 65504, is the square of 256.
        mean = mean.to(torch.promote_types(mean.dtype, torch.float32))
        squares, away = torch.zeros_like(mean), torch.empty_like(mean)
        for row in x:
            torch.sub(row, mean, out=away)
            squares.addcmul_(away, away)
        return squares.mul_(1 / (len(x) - 1)).sqrt_().to(x.dtype)
    return x.std(0, correction=1)
