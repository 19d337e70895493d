"""FoolsGold: clients whose updates have pointed the same way too closely lose their weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from robagg._core.checks import read_positive
from robagg._core.history import recall
from robagg._core.outcome import Outcome, Weights
from robagg._core.passes import Passes
from robagg._core.rule import Rule
from robagg._core.sketch import Sketch
from robagg._core.tolerance import F


@dataclass(frozen=True)
class FoolsGold(Rule):
    """The mean of the rows, weighted down by how alike the clients' sums of updates are: against one attacker's clones.

        c_ij = cos(H_i, H_j),    m_i = max(0, max_j c_ij),    c_ij <- c_ij m_i / m_j where m_i < m_j (pardoned)
        a_i = 1 - max(0, max_j c_ij),    a <- a / max a,    w_i = clip(sharpness (ln(a_i / (1 - a_i)) + 1/2), 0, 1)
        v = sum_i w_i x_i / sum_i w_i

    over j other than i, with 1 - a_i at least 0.01. H_i is all that client i has sent so far. The rule remembers it in
    the open: `step` takes the (n, d) sums as state and hands on the new ones. Row i must be client i in each round; a
    row that is broken adds nothing. Called without a state it judges by the rows of the call. Behind a pre-aggregator
    the sums are mixed as the rows are. Where no weight is left (all point one way) the value is the plain mean.

    It looks for clones, not for outliers: honest clients must differ, few clients that send different rows are not
    found, and one row can move the value anywhere. The paper adds up w_i x_i undivided, and may weigh coordinates.

    Args:
        f: how many rows may be Byzantine; used only to judge how many broken rows can be borne.
        sharpness: how steeply the weight falls; the paper's kappa.

    Example:
        >>> rule, state = FoolsGold(), None
        >>> for honest in (torch.eye(3), torch.eye(3)):
        ...     verdict, state = rule.step(torch.cat([honest, torch.full((2, 3), -1.0)]), state)
        >>> verdict.weights, state[3]
        (tensor([0.3333, 0.3333, 0.3333, 0.0000, 0.0000], dtype=torch.float64), tensor([-2., -2., -2.]))

    References:
        Fung, Yoon, Beschastnikh: The Limitations of Federated Learning in Sybil Settings, RAID 2020, arXiv:1808.04866.
    """

    f: F = None
    sharpness: float = 1.0
    anchors: ClassVar[tuple[str, ...]] = ("origin",)
    accumulates: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        read_positive(self, "sharpness")

    def solve(self, passes: Passes, f: int, shares: Tensor | None) -> Outcome:
        past = recall(passes)
        left = self.trust(past.distances(f))
        if past is not passes:
            passes.raise_alarm(past.alarm)
        c = torch.nn.functional.pad(left / left.sum(), (0, len(passes.anchors)))
        values = passes.combine(c)
        of = Weights(c, left=left)
        of = of if passes.matrix is None else of.of_sent(passes.matrix[: passes.n, : passes.sent])
        return Outcome(values, passes.through(c)[: passes.sent], passes.alarm, left=of.left, alike=True)

    def trust(self, sketch: Sketch) -> Tensor:
        """(n,) the weights w; all 1 where none is left."""
        n, tiny = sketch.n, torch.finfo(torch.float64).tiny
        origin = sketch.at("origin")
        product = sketch.gram @ origin
        gram = (sketch.gram - product - product[:, None] + origin @ product)[:n, :n]  # about the origin
        lengths = sketch.squared_distances(origin).maximum(sketch.slack(origin)).sqrt().clamp(min=tiny**0.5)
        cosines = (gram / lengths / lengths[:, None]).clamp(-1, 1).fill_diagonal_(0)
        most = cosines.amax(dim=1).clamp(min=0)
        pardoned = cosines * (most[:, None] / most.clamp(min=tiny)).clamp(max=1)
        apart = 1 - pardoned.amax(dim=1).clamp(min=0)
        # Rows that point one way are apart by what rounding makes of it.
        apart = apart.where(apart > 2 * sketch.rounding, 0.0)
        apart = (apart / apart.max().clamp(min=tiny)).clamp(max=0.99)
        weights = (self.sharpness * (torch.log(apart / (1 - apart)) + 0.5)).clamp(0, 1)
        return torch.where(weights.sum() > 0, weights, 1.0)
