"""From screened replies to the next model: the rule on the measured arrays, the median on what stays out of them.

Rules that shifting all rows only shifts take the received arrays as they are: the sketch is centred on the median, so
distances are between differences anyway, and nothing is subtracted or copied. Rules that measure from the origin (RFA,
CC, Clipping) get the differences to the global model, in which the origin means "no change".
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from robagg import CM
from robagg._core.aggregate import Request, aggregate
from robagg._core.rule import Rule, SortedRule
from robagg._core.shares import fill
from robagg._core.stack import LARGE, read
from robagg._core.tolerance import QuorumError
from robagg._core.verdict import Verdict, judge
from robagg.server.model import ArraySpec, Flat, Model
from robagg.server.screen import Screened


@dataclass(frozen=True)
class Combined:
    """The next model and how the rule came to it."""

    values: dict[str, Flat]
    """Every array of the model, flat, in its own dtype."""
    verdict: Verdict
    """Over the given replies, broken ones included."""
    state: Any
    """What a rule that remembers wants back in the next round."""


def combine(
    rule: Rule, model: Model, replies: Sequence[Screened], *, state: Any = None, max_weight: float | None = None
) -> Combined:
    """Aggregate by the rule's contract; QuorumError or ValueError where it has no quorum.

    Args:
        rule: the rule.
        model: what the replies started from.
        replies: all n that came with content; those with a reason are the broken rows.
        state: what the last round handed on.
        max_weight: weigh by claimed sizes, which lift none above this share; None counts every reply alike.
    """
    broken = {i: reply.reason for i, reply in enumerate(replies) if reply.reason}
    kept = [i for i in range(len(replies)) if i not in broken]
    if not kept:
        raise QuorumError(f"none of {len(replies)} replies can be used")
    base = model.flat(model.measured) if measures_from_origin(rule) else None
    rows = {i: _take(replies[i], model.measured, base) for i in kept}
    stack = read(list(rows.values()), broken=broken)
    with warnings.catch_warnings():  # that nobody is tolerated stands in the verdict, and in the report in turn
        warnings.simplefilter("ignore", RuntimeWarning)
        # Rules that sort numbers would take another pass to tell each reply's share.
        left, outcome = aggregate(rule, stack, Request(state=state, verdict=not isinstance(rule.core, SortedRule)))
    # A rule that walks to its centre knows how far the rows are from it, and needs no other pass.
    known = None if rule.mixers else outcome.reach
    verdict = judge(rule, left, outcome, distances_known=known)
    values: dict[str, Flat] = dict(verdict.value)
    state = verdict.value if rule.core.remembers else state
    if max_weight is not None:
        weights = share_by_size(verdict, [reply.size or 0.0 for reply in replies], max_weight)
        change = (weights - verdict.weights).tolist()
        values = {name: _move(value, [(rows[i][name], change[i]) for i in kept]) for name, value in values.items()}
        verdict = replace(verdict, weights=weights)
    if base is not None:
        values = {spec.name: _add(base[spec.name], values[spec.name], spec) for spec in model.measured}
    sound = [reply for i, reply in enumerate(replies) if i not in broken and np.isfinite(float(verdict.distances[i]))]
    if model.statistics:
        values |= CM(f=0)([_take(reply, model.statistics, None) for reply in sound])
    for spec in model.counters:
        ordered = np.sort(np.stack([reply.arrays[spec.name] for reply in sound]), axis=0)
        values[spec.name] = ordered[(len(sound) - 1) // 2]
    return Combined(values, verdict, state)


def measures_from_origin(rule: Rule) -> bool:
    """Whether adding the same vector to all rows does more than shift the result."""
    return any(stage.anchors for stage in rule.stages)


def share_by_size(verdict: Verdict, sizes: list[float], most: float) -> Tensor:
    """The rule's weights (n,) times the claimed sizes; their sum stays.

    A claim lifts no row above `most`, and none by more than the factor that lifts an equal share there: that the rule
    gives it little weight may be all that keeps a far row harmless. What the rule alone gives a row is always allowed.
    Rows so far off that the contract scales them down have their weights in other units, and keep them; so do all
    where a rule of somebody's own gives weights below 0, of which claims would change the sum.
    """
    weights = verdict.weights.clone()
    if bool((weights < 0).any()):
        return weights
    believed = [i for i, weight in enumerate(weights.tolist()) if weight != 0 and verdict.distances[i] < LARGE]
    alone = weights[believed]
    limits = torch.minimum(alone * max(1.0, most * len(believed)), alone.clamp(min=most))
    weights[believed] = fill(alone * alone.new_tensor(sizes)[believed], alone, limits)
    return weights


def _move(value: Tensor, parts: Sequence[tuple[Tensor, float]]) -> Tensor:
    """The value plus some rows times their change of weight."""
    total = value.to(_widen(value.dtype), copy=True)
    for row, change in parts:
        if change:
            total.add_(row, alpha=change)
    return total.to(value.dtype)


def _take(reply: Screened, specs: Sequence[ArraySpec], base: dict[str, Flat] | None) -> dict[str, Flat]:
    """Some arrays of a reply: as they came, or their differences to the global model."""
    if base is None:
        return {spec.name: reply.arrays[spec.name] for spec in specs}
    return {spec.name: reply.arrays[spec.name].to(_widen(spec.dtype)) - base[spec.name] for spec in specs}


def _add(base: Tensor, change: Tensor, spec: ArraySpec) -> Tensor:
    limit = torch.finfo(spec.dtype).max
    return (base + change).clamp(-limit, limit).to(spec.dtype)


def _widen(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)
