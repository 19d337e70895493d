"""From screened replies to the next model: the rule on the measured arrays, the median on what stays out of them.

Rules that shifting all rows only shifts take the received arrays as they are: the sketch is centred on the median, so
distances are between differences anyway, and nothing is subtracted or copied. Rules that measure from the origin (RFA,
CC, Clipping) get the differences to the global model, in which the origin means "no change".
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from robagg import CM
from robagg._core.aggregate import Request, aggregate
from robagg._core.claims import NO_CHANGE
from robagg._core.rule import Rule
from robagg._core.sorted import SortedRule
from robagg._core.stack import read
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
    idle: str = ""
    """Why client weights change nothing; empty where they do, or where there are none."""


def combine(
    rule: Rule,
    model: Model,
    replies: Sequence[Screened],
    *,
    state: Any = None,
    weights: Sequence[float] | None = None,
    max_weight: float | None = None,
    keep_gram: bool = False,
) -> Combined:
    """Aggregate by the rule's contract; QuorumError or ValueError where it has no quorum.

    Args:
        rule: the rule.
        model: what the replies started from.
        replies: all n that came with content; those with a reason are the broken rows.
        state: what the last round handed on.
        weights: what each of the n replies counts; None counts every reply alike.
        max_weight: the largest share that a weight can give a reply; None: as far as f allows it.
        keep_gram: whether to measure the Gram matrix for replays, which takes another pass.
    """
    broken = {i: reply.reason for i, reply in enumerate(replies) if reply.reason}
    kept = [i for i in range(len(replies)) if i not in broken]
    if not kept:
        raise QuorumError(f"none of {len(replies)} replies can be used")
    base = model.flat(model.measured) if measures_from_origin(rule) else None
    if base is not None and not all(bool(numbers.isfinite().all()) for numbers in base.values()):
        raise ValueError(f"the model that was sent out must be finite for {rule}, which measures from it")
    rows = {i: _take(replies[i], model.measured, base) for i in kept}
    stack = read(list(rows.values()), broken=broken)
    if state is not None:  # of other arrays, as where another part of the model is trained now, it is no start
        whole = state.keys() == rows[kept[0]].keys()
        state = {name: leaf.to(stack.device) for name, leaf in state.items()} if whole else None
    # Rules that sort numbers would take another pass for each reply's share, which is the same for all without weights.
    verdict_wanted = weights is not None or not isinstance(rule.core, SortedRule)
    request = Request(weights, state, verdict=verdict_wanted, max_weight=max_weight)
    with warnings.catch_warnings(record=True) as notes:  # that nobody is tolerated stands in the verdict too
        warnings.simplefilter("always", RuntimeWarning)
        left, outcome = aggregate(rule, stack, request)
    idle = next((str(note.message) for note in notes if str(note.message).startswith(NO_CHANGE)), "")
    # A rule that walks to its centre knows how far the rows are from it, and needs no other pass.
    known = None if rule.mixers else outcome.reach
    verdict = judge(rule, left, outcome, distances_known=known)
    values: dict[str, Flat] = dict(verdict.value)
    state = verdict.value if rule.core.remembers else state
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
    odd = find_odd([*model.statistics, *model.counters], sound, values)
    return Combined(values, verdict, state, gram, odd, idle)


def measures_from_origin(rule: Rule) -> bool:
    """Whether adding the same vector to all rows does more than shift the result."""
    return any(stage.anchors for stage in rule.stages)


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
