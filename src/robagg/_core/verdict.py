"""What a rule made of each client, for people: its share in the value, and why it was left out or limited."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from robagg import kernels
from robagg._core.outcome import Outcome, Treatment
from robagg._core.stack import Stack
from robagg._core.stage import Solver, describe_unprotected, find_in_force
from robagg._core.tolerance import F, resolve_f

CUT = 0.01
"""A row that a filter leaves with less of its weight counts as rejected."""
DOUBTED = 0.5
"""A row that a filter leaves with less of its weight has a reason against it."""
FAR = 2.0
"""A row this many times as far from the value as rows are from their mean loses its weight for that."""


@dataclass(frozen=True)
class Verdict:
    """A rule's value with each row's part in it.

    `print(verdict)` shows it as a small table.

    Args:
        value: the aggregate, in the kind the rows came in.
        weights: (n,) each row's share in the value, through pre-aggregators (sorted rules: its share of the
            coordinates).
        median_weight: the share of the coordinate-wise median, which TQ and Huber start from.
        distances: (n,) distance of each row to the value; NaN for a row that is broken.
        tau: the radius in the last step, for rules that have one; else None.
        rejected: (n,) rows that were rejected: broken, outside tau in the last step, or cut by a filter.
        reasons: why a row was left out or limited, one sentence each; empty for a row that was not.
        note: what holds for all rows at once, such as that none lay within tau; else empty.
        rule: the rule's text.
        f: the f in force: the rule's own, behind its pre-aggregators, on the rows that were not broken.
        f_asked: the f that the rule was given: a number, a share of the rows, or None for the most that n allows.
        unprotected: why nobody is tolerated though somebody was to be; empty where the protection that was asked for is
            there.
        shares: (n,) what each client counted of all: its client weight after the cap; None where all counted alike.

    Example:
        >>> import robagg as ra
        >>> verdict = ra.TQ(f=1).explain(torch.tensor([[1.0], [1.2], [0.8], [1.0], [9.0]]))
        >>> verdict.value, verdict.rejected.tolist(), verdict.f
        (tensor([1.]), [False, False, False, False, True], 1)
        >>> print(verdict.reasons[4])
        8 from the centre, beyond tau 0.4
    """

    value: Any
    weights: Tensor
    median_weight: float
    distances: Tensor
    tau: float | None
    rejected: Tensor
    reasons: tuple[str, ...]
    note: str = ""
    rule: str = ""
    f: int = 0
    f_asked: F = 0
    unprotected: str = ""

    shares: Tensor | None = None

    @property
    def not_believed(self) -> list[int]:
        """The rows that have a reason against them."""
        return [i for i, reason in enumerate(self.reasons) if reason]

    def __str__(self) -> str:
        n, doubted = len(self.reasons), self.not_believed
        tau = "" if self.tau is None else f", tau {self.tau:.4g}"
        lines = [f"{self.rule}: {n} rows, {len(doubted)} not believed{tau}"]
        lines.append(f"{'row':>5}  {'weight':>7}  {'distance':>9}")
        for i, reason in enumerate(self.reasons):
            distance = float(self.distances[i])
            shown = "-" if distance != distance else f"{distance:.4g}"
            weight = float(self.weights[i])
            share = f"{100 * weight:.2f}%" if weight else "0"
            lines.append(f"{i:>5}  {share:>7}  {shown:>9}  {reason}".rstrip())
        if self.median_weight >= 5e-5:  # below that it prints as nothing
            lines.append(f"{'rest':>5}  {100 * self.median_weight:>6.2f}%  {'':>9}  the median of all rows")
        if self.unprotected:
            lines.append(self.unprotected)
        elif self.shares is None and self.f != resolve_f(self.f_asked, n, self.rule):
            asked = "the most that n allows" if self.f_asked is None else self.f_asked
            lines.append(f"f in force: {self.f}, asked: {asked}")
        if self.shares is not None:
            held = float(self.shares.sort(descending=True).values[: self.f].sum())
            line = f"client weights: none counts more than {float(self.shares.max()):.4g} of all"
            lines.append(line + (f"; f in force: {self.f}, together at most {held:.4g}" if self.f else ""))
        if self.note:
            lines.append(self.note)
        return "\n".join(lines)


def rebuild(stack: Stack, outcome: Outcome) -> Any:
    """The value in the kind of the rows; what rounding took over the edge of the dtype is put back on it."""
    values = []
    for value, rows in zip(outcome.values, stack.leaves, strict=True):
        if value.dtype != rows[0].dtype:
            limit = torch.finfo(rows[0].dtype).max
            value = value.clamp(-limit, limit)
        values.append(value)
    return stack.rebuild(values, stack.lower_medians())


def judge(rule: Solver, stack: Stack, outcome: Outcome, *, distances_known: Tensor | None = None) -> Verdict:
    """The verdict on all given rows, broken ones included.

    `distances_known` (of the rows that are not broken) saves the pass that measures how far they are from the value.
    """
    n = stack.n
    weights = torch.zeros(n, dtype=torch.float64, device="cpu")
    distances = torch.full((n,), math.nan, dtype=torch.float64, device="cpu")
    rejected = torch.ones(n, dtype=torch.bool, device="cpu")
    kept = list(stack.kept)
    lost = n - len(kept)
    if outcome.weights is not None:
        weights[kept] = outcome.weights.cpu()
    distances[kept] = measure(stack, outcome.values) if distances_known is None else distances_known.cpu()
    outside = rejected.new_zeros(len(kept)) if outcome.outside is None else outcome.outside.cpu()
    if outcome.left is not None:
        outside = outcome.left.cpu() < CUT
    clipped = outcome.treatment is Treatment.CLIPPED
    rejected[kept] = False if clipped else outside
    tau = None if outcome.tau is None else float(outcome.tau)
    reach = distances[kept] if outcome.reach is None else outcome.reach.cpu()
    reasons = dict(stack.reasons)
    for k, row in enumerate(kept):
        if outside[k] and tau is not None:
            reasons[row] = (
                f"{float(reach[k]):.4g} from the centre, beyond tau {tau:.4g}{': clipped to tau' if clipped else ''}"
            )
        elif outcome.left is not None:
            scale = None if outcome.scale is None else float(outcome.scale)
            if reason := _describe_filtered(float(outcome.left[k]), float(distances[row]), scale):
                reasons[row] = f"points where another client does: {reason}" if outcome.alike else reason
        elif outcome.chosen and weights[row] == 0:
            reasons[row] = "not chosen"
    shares = None
    if outcome.votes is not None:
        shares = torch.zeros(n, dtype=torch.float64, device="cpu")
        shares[kept] = torch.tensor(outcome.votes.kept, dtype=torch.float64, device="cpu") / outcome.votes.total
    note = ""
    if len(kept) and not clipped and bool(outside.all()):
        stays = "is the median" if outcome.weights is None or not outcome.weights.any() else "stays where it was"
        note = f"No row lies within tau of the centre in the last step, so the value {stays}."
    if outcome.deviation is not None:
        off = f"{100 * outcome.deviation:.2g}%"
        note = f"{note} Rows were projected: squared distances have a standard deviation of {off}.".strip()
    return Verdict(
        value=rebuild(stack, outcome),
        weights=weights,
        median_weight=0.0 if outcome.median_weight is None else float(outcome.median_weight),
        distances=distances,
        tau=tau,
        rejected=rejected,
        reasons=tuple(reasons.get(i, "") for i in range(n)),
        note=note,
        rule=str(rule),
        f=find_in_force(rule, n, lost, outcome.votes)[-1] if rule.core.tolerates else 0,
        f_asked=rule.core.f_asked,
        unprotected=describe_unprotected(rule, n, lost, outcome.votes),
        shares=shares,
    )


def _describe_filtered(left: float, distance: float, scale: float | None) -> str:
    """Why a filter took weight from a row; empty where it left most of it."""
    if left >= DOUBTED:
        return ""
    kept = "cut" if left < CUT else f"{100 * left:.2g}% of its weight left"
    if scale is None:
        return kept
    if distance > FAR * scale:
        times = f", {distance / scale:.3g} times the spread of the rows" if scale else ""
        return f"far: {distance:.4g} from the value{times}: {kept}"
    return f"pulls with others in one direction: {kept}"


def measure(stack: Stack, values: Sequence[Tensor]) -> Tensor:
    """Distances (n,) of the rows to the value, in float64 and without overflow."""
    if not stack.kept:
        return torch.zeros(0, dtype=torch.float64, device="cpu")
    pairs = zip(stack.leaves, values, strict=True)
    distances = torch.stack([kernels.measure(rows, value) for rows, value in pairs]).sum(dim=0).sqrt().cpu()
    if any(rows[0].dtype == torch.float64 for rows in stack.leaves):
        # Only squares of float64 can overflow or vanish.
        for k in torch.nonzero(~((distances > 1e-150) & (distances < 1e150))).flatten().tolist():
            distances[k] = _measure_scaled([(rows[k], value) for rows, value in zip(stack.leaves, values, strict=True)])
    return distances


def _measure_scaled(pairs: Sequence[tuple[Tensor, Tensor]]) -> float:
    """The distance of a row to the value, leaf by leaf, where squares leave the range of float64."""
    gaps = [row.double() - value.double() for row, value in pairs]
    top = max((float(gap.abs().max()) for gap in gaps if gap.numel()), default=0.0)
    if math.isinf(top):
        return torch.finfo(torch.float64).max
    if top == 0:
        return 0.0
    distance = top * math.sqrt(sum(float((gap / top).square().sum()) for gap in gaps))
    return min(distance, torch.finfo(torch.float64).max)
