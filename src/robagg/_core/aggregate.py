"""What every rule promises, kept in one place: f against n, broken rows dropped, huge numbers borne.

A pass that meets numbers it cannot compute with raises an alarm; nobody looks for them beforehand. Only then are the
rows looked at: the broken are dropped, and where none is broken the pass is repeated in float64.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from robagg._core.contract import Attribution, check_outcome, is_ours, read_matrix
from robagg._core.leaf import describe_kind
from robagg._core.outcome import Outcome
from robagg._core.passes import AlarmError, Passes
from robagg._core.stack import Stack
from robagg._core.stage import Solver, describe_unprotected, find_in_force
from robagg._core.tolerance import QuorumError


@dataclass(frozen=True)
class Request:
    """What is asked of a rule, beside the rows."""

    weights: Any = None
    """n client sizes, for Mean."""
    state: Any = None
    """The last aggregate, for what starts from it."""
    generator: torch.Generator | None = None
    """What is random takes its numbers here."""
    verdict: bool = False
    """Whether each row's part is asked for, even where that takes another pass; without, it may not be given."""
    alarm: Tensor | None = None
    """() A flag on the device, for a round that is one CUDA graph: the alarm is added to it instead of asked for.

    Whoever gives it must look at it later and do again, without it, what came out with the flag set.
    """


def aggregate(rule: Solver, stack: Stack, request: Request) -> tuple[Stack, Outcome]:
    """Aggregate by the contract: drop the broken, keep the huge; the rows that were used and the outcome on them."""
    for stage in rule.stages:
        stage.resolve_f(stack.n)
    shares = None
    if request.weights is not None:
        shares, odd = _read_weights(rule, request.weights, stack.n)
        stack = stack.without(odd)
        if 0 in shares:  # a row without weight is never read, so no pass would find it broken
            stack = stack.without(stack.broken_rows())
    last = None if request.state is None else stack.flatten(request.state)
    if request.alarm is not None:
        check_quorum(rule, stack)
        in_force = find_in_force(rule, stack.n, stack.n - len(stack.kept))
        outcome = _attempt(rule, request, stack, in_force, shares, last)
        request.alarm.logical_or_(outcome.alarm)
        return stack, outcome
    # A second attempt draws what the first drew, so that a broken row changes nothing but its own absence.
    generator = request.generator
    source = torch.default_generator if generator is None and stack.device.type == "cpu" else generator
    mark = source.get_state() if rule.mixers and source is not None else None
    wide = False
    while True:
        check_quorum(rule, stack)
        in_force = find_in_force(rule, stack.n, stack.n - len(stack.kept))
        ready, back = stack.tamed() if wide else (stack, 1.0)
        try:
            outcome = _attempt(rule, request, ready, in_force, shares, last, back=back, wide=wide)
            met = not wide and bool(outcome.alarm)
        except AlarmError:
            met = True
        if not met:
            if 0 in in_force and (unprotected := describe_unprotected(rule, stack.n, stack.n - len(stack.kept))):
                warnings.warn(unprotected, RuntimeWarning, stacklevel=3)
            return stack, outcome
        broken = stack.broken_rows()
        if last is not None and not all(bool(torch.isfinite(leaf).all()) for leaf in last):
            raise ValueError("the state must be finite, got NaN or Inf in it")
        wide = not broken
        stack = stack.without(broken) if broken else stack
        if source is not None and mark is not None:
            source.set_state(mark)


def check_quorum(rule: Solver, stack: Stack) -> None:
    """Raise where too few of the rows that were given are left for the rule."""
    n, kept = stack.n, len(stack.kept)
    if kept == n >= rule.least_n:
        return
    short = next((stage for stage in rule.stages if stage.tolerance_left(n, n - kept) is None), None)
    if short is None and kept >= rule.least_n:
        return
    lost = "; ".join(f"row {i}: {reason}" for i, reason in sorted(stack.reasons.items())[:3])
    if short is not None:
        raise QuorumError(
            f"{short} needs n >= 2f+1 sound rows, or no more than f broken ones; "
            f"got {kept} sound and {n - kept} broken of {n} ({lost})"
        )
    raise QuorumError(f"{rule} needs at least {rule.least_n} sound rows, got {kept} of {n} ({lost})")


def _attempt(
    rule: Solver,
    request: Request,
    stack: Stack,
    in_force: Sequence[int],
    shares: list[float] | None,
    last: Sequence[Tensor] | None,
    *,
    back: float = 1.0,
    wide: bool = False,
) -> Outcome:
    """The outcome on rows `back` times smaller than they were sent, in float64 where `wide`."""
    names = dict.fromkeys(name for stage in rule.stages for name in stage.anchors)
    anchors = {name: _anchor(name, last, back) for name in names}
    passes = Passes(
        stack.leaves,
        anchors,
        wide=wide,
        unit=1 / back,
        verdict=request.verdict,
        asks=request.alarm is None and (wide or stack.device.type == "cpu"),
        guarded=not all(is_ours(type(stage)) for stage in rule.stages),
    )
    for mixer, f in zip(rule.mixers, in_force, strict=False):
        sketch = passes.distances(f) if mixer.needs_distances else passes.bare(f)
        with Attribution(mixer, "matrix"):
            matrix = mixer.matrix(sketch, generator=request.generator)
        whole = read_matrix(mixer, matrix, mixer.count_behind(passes.n), passes)
        passes.push(whole, shares_rows=mixer.shares_rows, anchored=bool(mixer.anchors))
    part = None
    if shares is not None:
        part = torch.tensor([shares[i] for i in stack.kept], dtype=torch.float64, device=stack.device)
    core = rule.core
    with Attribution(core, "solve"):
        outcome = core.solve(passes, in_force[-1], part)
    if not is_ours(type(core).solve):
        check_outcome(core, outcome, passes)
    return outcome if back == 1.0 else outcome.scaled(back)


def _read_weights(rule: Solver, weights: Any, n: int) -> tuple[list[float], dict[int, str]]:
    """The sizes that clients claim, and of those that are none, why not."""
    mixer = next((mixer for mixer in rule.mixers if not mixer.keeps_clients), None)
    if mixer is not None:
        raise ValueError(f"client weights need one row per client, but behind {mixer} a row stands for several")
    try:  # iterating text or a dict gives no sizes
        claims = None if isinstance(weights, str | bytes | Mapping) else list(weights)
    except TypeError:
        claims = None
    if claims is None:
        raise TypeError(f"weights must be {n} numbers, one per row, got {describe_kind(weights)}")
    if len(claims) != n:
        raise ValueError(f"weights must be one per row, got {len(claims)} weights for {n} rows")
    sizes = [_read_size(claim) for claim in claims]
    odd = {
        i: f"weight {describe_kind(claims[i]) if size is None else size} is no size"
        for i, size in enumerate(sizes)
        if size is None or not 0 <= size < math.inf
    }
    return [math.nan if size is None else size for size in sizes], odd


def _anchor(name: str, last: Sequence[Tensor] | None, back: float) -> Sequence[Tensor] | None:
    if name == "origin" or last is None:
        return None
    return [leaf.double() / back if back != 1.0 else leaf for leaf in last]


def _read_size(claim: Any) -> float | None:
    """What a client claims; None where it is no number."""
    try:
        return float(claim)
    except OverflowError:  # 10**400 is what a client said, and no size
        return math.inf
    except (Exception, SystemExit):  # whatever it is, it must not end the round
        return None
