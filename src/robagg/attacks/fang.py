"""Fang: local model poisoning, made against Krum or against rules that trim each coordinate."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from robagg._core.rule import Rule
from robagg.attacks.along import check_choice
from robagg.attacks.base import Attack, State, View
from robagg.attacks.strength import read_strength
from robagg.attacks.trial import Span

AGAINST = ("krum", "trim")
KRUMS = ("krum", "multikrum", "bulyan")
"""Rules that begin by Krum's scores."""
HALVINGS = 24


@dataclass(frozen=True)
class Fang(Attack):
    """Local model poisoning: against the signs of the honest mean, as far as the rule takes it.

    krum:  x_k = -lambda s,   lambda the first of lambda_0 2^-t that Krum chooses, t = 0, 1, ...
           lambda_0 = sqrt(min_l sum_j |x_j - x_l|^2 / ((n-2f-1) d)) + max_l |x_l| / sqrt(d)
    trim:  x_kj uniform from the largest honest value v_j of the coordinate to beyond v_j (where s_j < 0), or from the
           least one to beyond it (s_j > 0); beyond v is `reach` v or v / `reach`, whichever leads away

    with s the signs of the honest mean, and j in the sum over the n-f-2 honest rows nearest to x_l. Krum is the one of
    this package; lambda is halved 24 times at most. The paper states it for models, with the last global model as
    origin; what clients send here are updates, so that is 0.

    Args:
        against: "krum" or "trim" (for TM and CM); None: krum where the rule at hand is Krum, MultiKrum or Bulyan.
        reach: how far beyond the honest values it goes against trimming rules, above 1; the paper's b.

    Example:
        >>> import torch
        >>> from robagg import Krum
        >>> from robagg.attacks import Fang
        >>> honest = torch.randn(7, 20, generator=torch.Generator().manual_seed(0)) + 1
        >>> sent = Fang("krum")(honest, f=3)
        >>> value = Krum(f=3)(torch.cat([honest, sent]))
        >>> bool((value == sent[0]).all()), bool((value < 0).all())
        (True, True)

    References:
        Fang, Cao, Jia, Gong. Local model poisoning attacks to Byzantine-robust federated learning. USENIX Security
        2020. arXiv:1911.11815.
    """

    against: str | None = None
    reach: float = 2.0

    def __post_init__(self) -> None:
        if self.against is not None:
            check_choice(self, "against", AGAINST)
        read_strength(self, "reach")
        if self.reach <= 1:
            raise ValueError(f"reach must be a number above 1, got {self.reach:g}")

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        if not len(view.who):
            return view.allot(), state
        if (self.against or choose_target(view.rule)) == "krum":
            return view.send((-_find_lambda(view) * view.mean.sign()).to(view.honest.dtype)), state
        return self._go_beyond(view), state

    def _go_beyond(self, view: View) -> Tensor:
        """(f, d) beyond the honest values of each coordinate, on the side that the mean does not go to."""
        falls = view.mean < 0
        edge = torch.where(falls, view.honest.amax(0), view.honest.amin(0))
        # Away from 0 where the edge lies on the side that it leads to, else towards 0.
        far = torch.where((edge > 0) == falls, edge * self.reach, edge / self.reach)
        part = view.allot().uniform_(generator=view.generator)
        return edge + part * (far - edge)

    def describe(self, n: int, f: int) -> str:
        aim = {None: "the rule at hand", "krum": "Krum", "trim": "trimming"}[self.against]
        return f"against the signs of the honest mean, made for {aim}"


def choose_target(rule: Rule | None) -> str:
    """Which of the two attacks a rule meets."""
    return "krum" if rule is not None and rule.core.name() in KRUMS else "trim"


def _find_lambda(view: View) -> Tensor:
    """() the largest length per coordinate that Krum still chooses, or the last that is tried."""
    h, f, d = len(view.honest), view.f, view.honest.shape[1]
    n = h + f
    span = Span.of(view, view.mean.sign())
    gram = span.gram[:h, :h]
    lengths = gram.diagonal()
    apart = (lengths[:, None] + lengths - 2 * gram).clamp(min=0)
    near = apart.sort(dim=1).values[:, : max(n - f - 1, 1)].sum(dim=1).min()
    longest = (lengths + 2 * span.gram[:h, h] + span.gram[h, h]).clamp(min=0).max().sqrt()
    first = (near / (max(n - 2 * f - 1, 1) * max(d, 1))).sqrt() + longest / max(d, 1) ** 0.5
    tries = first * 0.5 ** torch.arange(HALVINGS + 1, dtype=torch.float64, device=gram.device)
    # |x_i - (-lambda s)|^2 of the honest rows (tries, h); the Byzantine ones are equal.
    ahead = span.gram[:h, h + 1] + span.gram[h, h + 1]
    gap = lengths + 2 * span.gram[:h, h] + span.gram[h, h] + 2 * tries[:, None] * ahead
    gap = (gap + tries[:, None].square() * span.gram[h + 1, h + 1]).clamp(min=0)
    most = max(n - f, 1)
    seen = torch.cat([apart.expand(len(tries), h, h), gap[:, :, None].expand(-1, -1, f)], dim=2)
    honest = seen.sort(dim=2).values[:, :, :most].sum(dim=2).amin(dim=1)
    byzantine = gap.sort(dim=1).values[:, : max(most - f, 0)].sum(dim=1)
    chosen = byzantine < honest  # of equal scores Krum takes the first row, which is honest
    index = torch.arange(len(tries), device=gram.device)
    best = torch.where(chosen, index, len(tries) - 1).min()
    found: Tensor = tries.index_select(0, best.view(1))[0]
    return found
