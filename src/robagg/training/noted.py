"""What the last round showed, in fixed places, so that a captured round can write it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from robagg._core.outcome import Outcome, Treatment
from robagg._core.rule import Rule
from robagg._core.stack import Stack
from robagg._core.verdict import Verdict, judge


class Noted:
    """Loss, tau, and each of n clients' weight, distance and fate in the last round that was noted."""

    def __init__(self, n: int, device: torch.device) -> None:
        self.n = n
        self.loss = torch.zeros((), device=device)
        self.tau = torch.zeros((), device=device, dtype=torch.float64)
        self.weights = torch.zeros(n, device=device, dtype=torch.float64)
        self.dropped = torch.zeros(n, device=device, dtype=torch.bool)
        self.reach = torch.zeros(n, device=device, dtype=torch.float64)
        self.has_tau = False
        self._heard: tuple[Sequence[int], Stack, Outcome]

    def note(self, asked: Sequence[int], stack: Stack, outcome: Outcome) -> None:
        """Lay down what the rule made of the rows of those who were asked."""
        self._heard = asked, stack, outcome
        who, weights = [asked[k] for k in stack.kept], outcome.weights
        if weights is None:
            return
        out = weights == 0 if outcome.outside is None or outcome.treatment is Treatment.CLIPPED else outcome.outside
        reach = torch.full_like(weights, torch.nan) if outcome.reach is None else outcome.reach
        if len(who) == self.n:
            self.weights.copy_(weights)
            self.dropped.copy_(out)
            self.reach.copy_(reach)
        else:
            self.weights.fill_(torch.nan)
            self.weights[asked] = 0
            self.weights[who] = weights
            self.dropped.fill_(True)
            self.dropped[who] = out
            self.reach.fill_(torch.nan)
            self.reach[who] = reach
        self.has_tau = outcome.tau is not None
        if outcome.tau is not None:
            self.tau.copy_(outcome.tau)

    def explain(self, rule: Rule) -> Verdict:
        """The verdict on all clients, those who were not asked among them, in the last round that was noted."""
        asked, stack, outcome = self._heard
        verdict = judge(rule, stack, outcome)
        if len(asked) == self.n:
            return verdict
        reasons = ["not asked in this round"] * self.n
        for i, reason in zip(asked, verdict.reasons, strict=True):
            reasons[i] = reason
        at = torch.tensor(asked, device="cpu")
        return replace(
            verdict,
            weights=verdict.weights.new_zeros(self.n).index_copy(0, at, verdict.weights),
            distances=verdict.distances.new_full((self.n,), torch.nan).index_copy(0, at, verdict.distances),
            rejected=verdict.rejected.new_zeros(self.n).index_copy(0, at, verdict.rejected),
            reasons=tuple(reasons),
        )
