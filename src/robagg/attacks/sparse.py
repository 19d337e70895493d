"""Sparse: far in a few coordinates, near in all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from robagg.attacks.alie import deviate, hide
from robagg.attacks.base import State, View
from robagg.attacks.own import find_largest
from robagg.attacks.strength import ByFormula, read_part, read_strength


@dataclass(frozen=True)
class Sparse(ByFormula):
    """Move the honest mean against its signs: far in the coordinates that move the model most, a little elsewhere.

    x_kj = mean_j - sign(mean_j) std_j (scale where |mean_j| is among the largest `share` of all, else z)

    with z by ALIE's formula. Distances between whole rows hardly show it, and of the coordinates few are far off. (The
    paper looks for those coordinates by pruning the network, which an attack here does not see.)

    Args:
        z: the strength in most coordinates, in standard deviations; None: by ALIE's formula.
        scale: the strength in the few.
        share: which part of the coordinates these are, from 0 to 1.
        jitter: how far each client moves from that row by a vector of its own, in honest spreads (see `Jittered`).

    Example:
        >>> import torch
        >>> from robagg.attacks import Sparse
        >>> honest = torch.tensor([[8.0, 1.0, -1.0], [6.0, 2.0, -2.0], [7.0, 3.0, -3.0]])
        >>> Sparse(z=0.0, scale=10.0, share=0.3)(honest)
        tensor([[-3.,  2., -2.]])

    References:
        Ozfatura, Ozfatura, Kupcu, Gunduz. Aggressive or imperceptible, or both: network pruning assisted hybrid
        Byzantines in federated learning. 2024. arXiv:2404.06230.
    """

    parameter: ClassVar[str] = "z"
    z: float | None = None
    scale: float = 5.0
    share: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        read_strength(self, "scale")
        read_part(self, "share")

    def compute_strength(self, n: int, f: int) -> float:
        return hide(n, f)

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        times = torch.where(find_largest(view.mean, self.share), self.scale, self.strength(view.n, view.f))
        row = view.mean - view.mean.sign() * deviate(view.honest, view.mean) * times.to(view.mean.dtype)
        return self.spread(view, row, state), state

    def describe(self, n: int, f: int) -> str:
        return f"{super().describe(n, f)}, and {self.scale:g} in {100 * self.share:g} % of the coordinates"
