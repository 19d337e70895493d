"""MinSum: its squared distances to the honest rows add up to no more than those of some honest row."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from robagg.attacks.along import Along
from robagg.attacks.base import State, View
from robagg.attacks.strength import read_strength


@dataclass(frozen=True)
class MinSum(Along):
    """Go as far from the honest mean as the farthest honest row.

    x_k = mean + scale gamma u,    gamma = max {g : sum_i |mean + g u - x_i|^2 <= max_i sum_j |x_i - x_j|^2}
                                         = max_i |x_i - mean|

    with the unit vector u along minus the honest mean, minus the standard deviations of the coordinates, or minus the
    signs of the mean. It knows nothing of the rule it meets.

    Args:
        along: "mean", "std" or "sign".
        scale: how many times gamma; 1 is the paper's attack.
        jitter: how far each client moves from that row by a vector of its own, in honest spreads (see `Jittered`).

    Example:
        >>> import torch
        >>> from robagg.attacks import MinSum, View
        >>> honest = torch.tensor([[4.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
        >>> MinSum("mean").craft(View(honest, None, n=4, f=1), {})[0]
        tensor([[0., 0.]])

    References:
        Shejwalkar, Houmansadr. Manipulating the Byzantine: optimizing model poisoning attacks and defenses for
        federated learning. NDSS 2021.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        read_strength(self, "scale")

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        # The y_i = x_i - mean sum to 0: both sides are h |.|^2 + sum_j |y_j|^2.
        gamma = torch.linalg.vector_norm(view.away, dim=1).max()
        return self.spread(view, self.leave(view, self.scale * gamma), state), state

    def describe(self, n: int, f: int) -> str:
        times = "" if self.scale == 1 else f"{self.scale:g} times "
        return f"{times}as far from the mean as the farthest honest row, along {self.along}{self.describe_jitter()}"
