"""MinMax: no farther from any honest row than honest rows are from each other."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from robagg.attacks.along import Along
from robagg.attacks.base import State, View
from robagg.attacks.strength import read_strength


@dataclass(frozen=True)
class MinMax(Along):
    """Go as far from the honest mean as the farthest pair of honest rows allows.

    x_k = mean + scale gamma u,    gamma = max {g : max_i |mean + g u - x_i| <= max_ij |x_i - x_j|}
                                         = min_i (b_i + sqrt(b_i^2 - |y_i|^2 + max_ij |x_i - x_j|^2))

    with y_i = x_i - mean, b_i = <y_i, u> and the unit vector u along minus the honest mean, minus the standard
    deviations of the coordinates, or minus the signs of the mean. It knows nothing of the rule it meets.

    Args:
        along: "mean", "std" or "sign".
        scale: how many times gamma; 1 is the paper's attack.
        jitter: how far each client moves from that row by a vector of its own, in honest spreads (see `Jittered`).

    Example:
        >>> import torch
        >>> from robagg.attacks import MinMax, View
        >>> honest = torch.tensor([[3.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
        >>> MinMax("mean").craft(View(honest, None, n=4, f=1), {})[0]
        tensor([[1., 0.]])

    References:
        Shejwalkar, Houmansadr. Manipulating the Byzantine: optimizing model poisoning attacks and defenses for
        federated learning. NDSS 2021.
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        read_strength(self, "scale")

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        u = self.aim(view)
        gram = (view.away @ view.away.T).double()
        squared = gram.diagonal()
        widest = (squared[:, None] + squared - 2 * gram).max()
        ahead = (view.away @ u).double()
        gamma = (ahead + (ahead.square() - squared + widest).clamp(min=0).sqrt()).min()
        return self.spread(view, self.leave(view, self.scale * gamma.to(u.dtype)), state), state

    def describe(self, n: int, f: int) -> str:
        times = "" if self.scale == 1 else f"{self.scale:g} times "
        return f"{times}as far as the farthest honest pair allows, along {self.along}{self.describe_jitter()}"
