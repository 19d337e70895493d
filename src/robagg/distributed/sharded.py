"""A rule on rows whose columns are shared out over ranks: sharded state dicts, DTensors, or plain parts of vectors."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from robagg._core.aggregate import Request, aggregate
from robagg._core.outcome import Outcome
from robagg._core.rule import Rule
from robagg._core.shared import SharedStack
from robagg._core.stack import Stack, read
from robagg._core.tolerance import QuorumError
from robagg._core.verdict import Verdict, judge, rebuild
from robagg.distributed.dtensor import Parts, take_parts
from robagg.distributed.group import GroupRanks, find_device
from robagg.kernels.types import Rows


class Sharded:
    """A rule on rows of which each rank holds some columns: every rank calls it with its own, and gets its own back.

    It protects against bad rows, not against a rank that runs other code.

    A rank sketches its columns, one all_reduce sums the n x n Gram matrices, and each combines its columns: no rank
    sees those of another, and the value and verdict are those of all columns in one place, but for rounding. Rules
    behind NNM or Bucketing that need a median take a second all_reduce. CM, TM and Mean send one number: whether a row
    is broken. Rows broken on one rank are broken on all.

    All ranks call it with as many rows, in the same order, and with the same client weights. A row is a vector, or a
    state dict or other tree of tensors: DTensors as FSDP and `distribute_tensor` make them, with plain tensors beside
    them on every rank alike; or plain tensors alone, which are then this rank's own columns.

    Args:
        rule: a rule or a chain, the same on all ranks.
        group: a process group; None: all ranks.

    Example:
        >>> import torch.distributed as dist, robagg as ra
        >>> from robagg.distributed import Sharded
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> Sharded(ra.CM(f=1))([torch.tensor([1.0, 2.0]), torch.tensor([3.0, 2.0]), torch.tensor([9e9, 0.0])])
        tensor([3., 2.])
        >>> dist.destroy_process_group()
    """

    def __init__(self, rule: Rule, group: dist.ProcessGroup | None = None) -> None:
        if not isinstance(rule, Rule):
            raise TypeError(f"rule must be a robagg rule or chain, got {rule!r}")
        self.rule, self.group = rule, group

    def __call__(
        self,
        x: Any,
        *,
        weights: Any = None,
        max_weight: float | None = None,
        generator: torch.Generator | None = None,
    ) -> Any:
        """This rank's columns of the aggregate; what is asked is as for `rule(x)`.

        What is random draws from the first rank's generator.
        """
        parts, stack, outcome = self._aggregate(x, Request(weights, generator=generator, max_weight=max_weight))
        return parts.wrap(rebuild(stack, outcome))

    def explain(
        self,
        x: Any,
        *,
        weights: Any = None,
        max_weight: float | None = None,
        generator: torch.Generator | None = None,
    ) -> Verdict:
        """The verdict of all columns, the same on every rank, with this rank's columns of the value."""
        request = Request(weights, generator=generator, verdict=True, max_weight=max_weight)
        parts, stack, outcome = self._aggregate(x, request)
        verdict = self._judge(stack, outcome)
        return replace(verdict, value=parts.wrap(verdict.value))

    def step(
        self,
        x: Any,
        state: Any = None,
        *,
        weights: Any = None,
        max_weight: float | None = None,
        generator: torch.Generator | None = None,
    ) -> tuple[Verdict, Any]:
        """The verdict and the next state: one that remembers takes its last value as state, others hand it through."""
        request = Request(weights, state, generator, verdict=True, max_weight=max_weight)
        parts, stack, outcome = self._aggregate(x, request)
        verdict = self._judge(stack, outcome)
        after = parts.wrap(copy.deepcopy(verdict.value)) if self.rule.core.remembers else state
        return replace(verdict, value=parts.wrap(verdict.value)), after

    def _aggregate(self, x: Any, request: Request) -> tuple[Parts, SharedStack, Outcome]:
        parts = take_parts(x, self.group)
        failed: Exception | None = None
        try:
            stack = read(parts.rows, apart=parts.repeated)
        except (TypeError, ValueError) as e:
            if not isinstance(parts.rows, Sequence) or not parts.rows:
                raise
            failed, stack = e, _stand_in(len(parts.rows), str(e), find_device(self.group))
        ranks = GroupRanks(self.group, stack.device)
        shared = share(stack, ranks, parts)
        state = None if request.state is None else parts.unwrap(request.state)
        generator = ranks.share_draws(self.rule, request.generator)
        try:
            used, outcome = aggregate(self.rule, shared, replace(request, state=state, generator=generator))
        except QuorumError as e:
            raise failed or e from e
        assert isinstance(used, SharedStack)
        return parts, used, outcome

    def _judge(self, stack: SharedStack, outcome: Outcome) -> Verdict:
        return judge(self.rule, stack, outcome, distances_known=ranks_of(stack).measure(stack, outcome.values))


def share(stack: Stack, ranks: GroupRanks, parts: Parts) -> SharedStack:
    """One rank's columns, with a row of NaN for each that it could not read: so all ranks learn of it."""
    faults = {**stack.reasons, **parts.faults}
    place = {row: k for k, row in enumerate(stack.kept)}

    def fill_in(leaves: Rows) -> Rows:
        if not faults:
            return leaves
        missing = torch.full_like(leaves[0], torch.nan if leaves[0].is_floating_point() else 0)
        return [leaves[place[row]] if row in place else missing for row in range(stack.n)]

    again = (k for k, paths in enumerate(stack.paths) if not parts.repeated.isdisjoint(paths))
    given = {one.name: getattr(stack, one.name) for one in fields(Stack)} | {
        "leaves": tuple(map(fill_in, stack.leaves)),
        "counters": tuple(map(fill_in, stack.counters)),
        "kept": tuple(range(stack.n)),
        "reasons": {},
    }
    return SharedStack(**given, ranks=ranks, repeated=frozenset(again), faults=faults)


def ranks_of(stack: SharedStack) -> GroupRanks:
    """The ranks of a stack that was made here."""
    assert isinstance(stack.ranks, GroupRanks)
    return stack.ranks


def _stand_in(n: int, reason: str, device: torch.device) -> Stack:
    """A stack in which every row is broken, in the place of what this rank could not read."""
    row: Tensor = torch.full((1,), torch.nan, device=device)
    return replace(read([row] * n), reasons=dict.fromkeys(range(n), reason), kept=())
