"""SCM: where the rule at hand is most sensitive."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from robagg.attacks.along import Along
from robagg.attacks.base import Setup, State, View
from robagg.attacks.trial import Span, try_rows

DISTANCES = tuple(0.1 * 1.3**k for k in range(24))
"""In honest spreads: 0.1 to 42."""


@dataclass(frozen=True)
class SCM(Along):
    """Sensitivity curve maximisation: all Byzantine clients at the point on a line that moves the rule most along it.

    x_k = mean + c* s u,    c* = argmax_c <R(honest rows, f times mean + c s u) - R(honest rows, f times mean), u>

    with the honest spread s, the unit vector u along minus the honest mean, minus the standard deviations of the
    coordinates, or minus the signs of the mean, and 24 distances c from 0.1 to 42, each 1.3 times the one before. What
    is maximised is the sensitivity curve of the rule R with all f points in one place. u turns as slowly as the mean
    does, so what is gained adds up over the rounds (the paper's aligned attack).

    It knows the rule from the run, as `Optimal` does, and costs 24 tries a round: n x n work each for rules that decide
    by distances alone, else a call of the rule. Tries know no trusted row and no earlier rows: FLTrust and MoNNA are
    tried with the median in the place of that row, FoolsGold on the round's rows alone. `Optimal` tries more
    directions, and judges by the whole step.

    Args:
        along: "mean", "std" or "sign".
        jitter: how far each client moves from that row by a vector of its own, in honest spreads (see `Jittered`).

    Example:
        >>> import torch
        >>> from robagg import CM
        >>> from robagg.attacks import SCM
        >>> honest = torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0]])
        >>> sent = SCM("mean")(honest, f=2, rule=CM(f=2))
        >>> CM(f=2)(torch.cat([honest, sent]))  # two below all others: the median of seven is the second
        tensor([2.])

    References:
        Schroth, Vlaski, Zoubir. Sensitivity curve maximization: attacking robust aggregators in distributed learning.
        2024. arXiv:2412.17740.
    """

    def start(self, setup: Setup) -> State:
        """distances (24,): what is tried in each round, and what the jitter needs."""
        tried = torch.tensor(DISTANCES, dtype=torch.float64, device=setup.device)
        return {"distances": tried, **super().start(setup)}

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        if view.rule is None:
            raise ValueError("rule must be the rule that the rows will meet, got None")
        if not len(view.who):
            return view.allot(), state
        u, h = self.aim(view), len(view.honest)
        span = Span.of(view, u)
        lengths = state["distances"] * view.spread.double()
        row = torch.zeros(len(lengths), len(span.gram), dtype=torch.float64, device=u.device)
        row[:, h + 1] = lengths
        _, along = try_rows(view, view.rule, span, row[:, None].expand(-1, max(view.f, 1), -1))
        gain = torch.nan_to_num(along[:, h + 1], nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf)
        # Ties: the nearest, on every device.
        index = torch.arange(len(gain), device=gain.device)
        best = torch.where(gain == gain.max(), index, len(gain) - 1).min()
        distance = lengths.index_select(0, best.view(1))[0].to(u.dtype)
        return self.spread(view, self.leave(view, distance), state), state

    def describe(self, n: int, f: int) -> str:
        count = len(DISTANCES)
        return f"where the rule moves most, of {count} distances along {self.along}{self.describe_jitter()}"
