"""What every rule promises, kept in one place: f against n, broken rows dropped, huge numbers borne.

A pass that meets numbers it cannot compute with raises an alarm; nobody looks for them beforehand. Only then are the
rows looked at: the broken are dropped, and where none is broken the pass is repeated in float64.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from robagg._core.claims import read_claims
from robagg._core.contract import Attribution, check_outcome, is_ours, read_matrix
from robagg._core.history import Followed, read_sums
from robagg._core.outcome import Outcome
from robagg._core.passes import Passes
from robagg._core.projected import ProjectedPasses
from robagg._core.projection import DISTANCES, Projection, choose_projection
from robagg._core.shared import SharedPasses, SharedStack
from robagg._core.sketch import AlarmError
from robagg._core.stack import Stack
from robagg._core.stage import Solver, describe_unprotected, find_in_force, find_left
from robagg._core.tolerance import F, QuorumError
from robagg._core.votes import Votes


@dataclass(frozen=True)
class Request:
    """What is asked of a rule, beside the rows."""

    weights: Any = None
    """What each of n clients claims to count."""
    state: Any = None
    """The last aggregate, for what starts from it."""
    generator: torch.Generator | None = None
    """What is random takes its numbers here."""
    verdict: bool = False
    """Whether each row's part is asked for, even where that takes another pass; without, it may not be given."""
    max_weight: float | None = None
    """The largest share that a claim can give a client; None: as far as f allows it."""
    distances: str = "auto"
    """Whether distances are "exact", "projected", or projected where that pays: "auto"."""
    root: Any = None
    """A row that the server trusts, for what measures to it."""
    alarm: Tensor | None = None
    """() A flag on the device, for a round that is one CUDA graph: the alarm is added to it instead of asked for.

    Whoever gives it must look at it later and do again, without it, what came out with the flag set.
    """


def aggregate(rule: Solver, stack: Stack, request: Request) -> tuple[Stack, Outcome]:
    """Aggregate by the contract: drop the broken, keep the huge; the rows that were used and the outcome on them."""
    if request.distances not in DISTANCES:
        raise ValueError(f"distances must be one of {', '.join(DISTANCES)}, got {request.distances!r}")
    scaled = getattr(rule.core, "scaled", False)
    if scaled and request.distances == "projected":
        raise ValueError(
            f"distances must be auto or exact for {rule}, which looks at single coordinates, got 'projected'"
        )
    for stage in rule.stages:
        stage.resolve_f(stack.n)
    claims = read_claims(rule, request.weights, request.max_weight, stack.n)
    if claims is not None:
        stack = stack.without(claims.odd)
        if claims.leave_out():  # a row without votes is never read, so no pass would find it broken
            stack = stack.without(stack.broken_rows())
    accumulates = getattr(rule.core, "accumulates", False)
    sums = read_sums(stack, request.state) if accumulates and request.state is not None else None
    last = None if request.state is None or accumulates else stack.flatten(request.state)
    root = None if request.root is None else stack.flatten(request.root)
    check_root(rule, request)
    if request.alarm is not None:
        votes = None if claims is None else claims.deal(stack.kept)
        check_quorum(rule, stack, votes)
        in_force = find_in_force(rule, stack.n, stack.n - len(stack.kept), votes)
        outcome = _attempt(rule, request, stack, in_force, votes, last, root, sums=sums)
        request.alarm.logical_or_(outcome.alarm)
        return stack, outcome
    projection = None
    if type(stack) is Stack and not scaled:  # rows that lie elsewhere have passes of their own
        projection = choose_projection(request.distances, stack.leaves, request.generator)
    # A second attempt draws what the first drew, so that a broken row changes nothing but its own absence.
    generator = request.generator
    source = torch.default_generator if generator is None and stack.device.type == "cpu" else generator
    mark = source.get_state() if rule.mixers and source is not None else None
    wide = False
    while True:
        votes = None if claims is None else claims.deal(stack.kept)
        check_quorum(rule, stack, votes)
        in_force = find_in_force(rule, stack.n, stack.n - len(stack.kept), votes)
        ready, back = stack.tamed() if wide else (stack, 1.0)
        try:
            outcome = _attempt(
                rule, request, ready, in_force, votes, last, root, projection, sums=sums, back=back, wide=wide
            )
            met = not wide and bool(outcome.alarm)
        except AlarmError:
            met = True
        if not met:
            if 0 in in_force and (unprotected := describe_unprotected(rule, stack.n, stack.n - len(stack.kept), votes)):
                warnings.warn(unprotected, RuntimeWarning, stacklevel=3)
            return stack, outcome
        broken = stack.broken_rows()
        for name, point in (("state", last if sums is None else [sums]), ("root", root)):
            finite = point is None or all(bool(torch.isfinite(leaf).all()) for leaf in point)
            if not (stack.all_hold(finite) if isinstance(stack, SharedStack) else finite):
                raise ValueError(f"the {name} must be finite, got NaN or Inf in it")
        wide = not broken
        stack = stack.without(broken) if broken else stack
        if source is not None and mark is not None:
            source.set_state(mark)


def check_quorum(rule: Solver, stack: Stack, votes: Votes | None = None) -> None:
    """Raise where too few of the rows that were given are left for the rule."""
    n, kept = stack.n, len(stack.kept)
    if kept == n >= rule.least_n:
        return
    short = next((stage for stage in rule.stages if find_left(stage, n, n - kept, votes) is None), None)
    if short is None and kept >= rule.least_n:
        return
    lost = "; ".join(f"row {i}: {reason}" for i, reason in sorted(stack.reasons.items())[:3])
    if short is not None:
        raise QuorumError(
            f"{short}: sound rows must be at least 2f+1, or broken ones at most f, "
            f"got {kept} sound and {n - kept} broken of {n} ({lost})"
        )
    raise QuorumError(f"{rule}: sound rows must be at least {rule.least_n}, got {kept} of {n} ({lost})")


def _attempt(
    rule: Solver,
    request: Request,
    stack: Stack,
    in_force: Sequence[int],
    votes: Votes | None,
    last: Sequence[Tensor] | None,
    root: Sequence[Tensor] | None,
    projection: Projection | None = None,
    *,
    sums: Tensor | None = None,
    back: float = 1.0,
    wide: bool = False,
) -> Outcome:
    """The outcome on rows `back` times smaller than they were sent, in float64 where `wide`."""
    names = dict.fromkeys(name for stage in rule.stages for name in stage.anchors)
    points = {"last": last, "root": root}
    anchors = {name: _anchor(points.get(name), back) for name in names if name != "root" or root is not None}
    kind = stack.open_passes if projection is None else partial(ProjectedPasses, stack.leaves, projection=projection)
    if sums is not None:
        kind = partial(Followed, stack.leaves, sums=sums if len(stack.kept) == stack.n else sums[list(stack.kept)])
    passes = kind(
        anchors,
        wide=wide,
        unit=1 / back,
        verdict=request.verdict,
        asks=request.alarm is None and (wide or stack.device.type == "cpu"),
        guarded=not all(is_ours(type(stage)) for stage in rule.stages),
        votes=None if votes is None else torch.tensor(votes.kept, device=stack.device),
        outnumbered=votes is not None and any(votes.outnumber(stage.f_asked) for stage in rule.stages),
    )
    for mixer, count in zip(rule.mixers, in_force, strict=False):
        f = _count_votes(getattr(mixer, "f", 0), count, votes, passes)
        sketch = passes.distances(f) if mixer.needs_distances else passes.bare(f)
        with Attribution(mixer, "matrix"):
            matrix = mixer.matrix(sketch, generator=request.generator)
        matrix = read_matrix(mixer, matrix, mixer.count_behind(passes.n), passes)
        passes.push(matrix, shares_rows=mixer.shares_rows, anchored=bool(mixer.anchors))
        if passes.votes is not None:
            passes.votes = mixer.votes_behind(matrix, passes.votes)
    core = rule.core
    f = _count_votes(core.f_asked, in_force[-1], votes, passes)
    part = None if passes.votes is None else passes.votes.double() / passes.total
    with Attribution(core, "solve"):
        outcome = core.solve(passes, f, part)
    if not is_ours(type(core).solve):
        check_outcome(core, outcome, passes)
    if isinstance(passes, SharedPasses):
        outcome = passes.settle(outcome)
    outcome = replace(outcome, deviation=passes.deviation)
    outcome = outcome if votes is None else replace(outcome, votes=votes)
    return outcome if back == 1.0 else outcome.scaled(back)


def check_root(rule: Solver, request: Request) -> None:
    """Refuse a trusted row that nobody measures to; warn of one that is missing, where the host may be asked."""
    measures = any("root" in stage.anchors for stage in rule.stages)
    if request.root is not None and not measures:
        raise ValueError(f"root must come with a rule that measures to a trusted row, got {rule}")
    if request.root is None and measures and request.alarm is None:
        warnings.warn(
            f"{rule} was given no root, a row that the server trusts: the coordinate-wise median stands in for it",
            RuntimeWarning,
            stacklevel=4,
        )


def _anchor(point: Sequence[Tensor] | None, back: float) -> Sequence[Tensor] | None:
    """A point on rows that are `back` times smaller, leaf by leaf; None is the origin."""
    if point is None:
        return None
    return [leaf.double() / back if back != 1.0 else leaf for leaf in point]


def _count_votes(f: F, in_force: int, votes: Votes | None, passes: Passes) -> int:
    """How many of the rows that reach a stage may be Byzantine, or with client weights how many votes."""
    if votes is None or passes.votes is None:
        return in_force
    return votes.count_held(f, in_force, passes.votes.tolist())
