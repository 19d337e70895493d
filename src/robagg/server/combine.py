"""From screened replies to the next model: the rule on the measured arrays, the median on what stays out of them.

Rules that shifting all rows only shifts take the received arrays as they are: the sketch is centred on the median, so
distances are between differences anyway, and nothing is subtracted or copied. Rules that measure from the origin (RFA,
CC, Clipping) get the differences to the global model, in which the origin means "no change".
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
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
from robagg.server.gram import Gram, measure_gram
from robagg.server.model import ArraySpec, Flat, Model
from robagg.server.odd import find_odd
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
    gram: Gram | None
    """What replays need, where it was asked for."""
    aside: dict[str, str]
    """By client what is odd about arrays that stay out of the distances, where something is."""


def combine(
    rule: Rule,
    model: Model,
    replies: Sequence[Screened],
    *,
    state: Any = None,
    max_weight: float | None = None,
    trust: Mapping[str, float] | None = None,
    keep_gram: bool = False,
) -> Combined:
    """Aggregate by the rule's contract; QuorumError or ValueError where it has no quorum.

    Args:
        rule: the rule.
        model: what the replies started from.
        replies: all n that came with content; those with a reason are the broken rows.
        state: what the last round handed on.
        max_weight: weigh by claimed sizes, which lift none above this share; None counts every reply alike.
        trust: what a client's weight is multiplied by, where that is not 1; None: the rule alone decides.
        keep_gram: whether to measure the Gram matrix for replays, which takes another pass.
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
    if max_weight is not None or trust is not None:
        weights = verdict.weights
        if max_weight is not None:
            weights = share_by_size(verdict, [reply.size or 0.0 for reply in replies], max_weight)
        if trust is not None:
            weights = scale_weights(verdict, weights, [trust.get(reply.client, 1.0) for reply in replies])
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
    gram = None
    if keep_gram:
        start = None if base is not None else model.flat(model.measured)
        gram = measure_gram(left, [replies[i].client for i in left.kept], start)
    return Combined(values, verdict, state, gram, find_odd([*model.statistics, *model.counters], sound, values))


def measures_from_origin(rule: Rule) -> bool:
    """Whether adding the same vector to all rows does more than shift the result."""
    return any(stage.anchors for stage in rule.stages)


def share_by_size(verdict: Verdict, sizes: list[float], most: float) -> Tensor:
    """The rule's weights (n,) times the claimed sizes; their sum stays.

    A claim lifts no row above `most`, and none by more than the factor that lifts an equal share there: that the rule
    gives it little weight may be all that keeps a far row harmless. What the rule alone gives a row is always allowed.
    """
    weights, believed = verdict.weights.clone(), find_weighable(verdict)
    alone = weights[believed]
    limits = torch.minimum(alone * max(1.0, most * len(believed)), alone.clamp(min=most))
    weights[believed] = fill(alone * alone.new_tensor(sizes)[believed], alone, limits)
    return weights


def scale_weights(verdict: Verdict, weights: Tensor, factors: list[float]) -> Tensor:
    """Weights (n,) times the factors; their sum stays, unless all that have one are without trust."""
    weights, believed = weights.clone(), find_weighable(verdict)
    scaled = weights[believed] * weights.new_tensor(factors)[believed]
    if float(scaled.sum()) > 0:
        weights[believed] = scaled * (weights[believed].sum() / scaled.sum())
    return weights


def find_weighable(verdict: Verdict) -> list[int]:
    """The rows whose weights may be changed.

    Rows so far off that the contract scales them down have their weights in other units, and keep them; so do all
    where a rule of somebody's own gives weights below 0, of which factors would change the sum.
    """
    weights = verdict.weights.tolist()
    if any(weight < 0 for weight in weights):
        return []
    return [i for i, weight in enumerate(weights) if weight != 0 and verdict.distances[i] < LARGE]


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
