"""A process group as the engine wants it: sums, maxima, broken rows, distances and draws that all ranks have alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from robagg._core.rule import Rule
from robagg._core.shared import SharedStack
from robagg._core.verdict import measure

NOT_FINITE = "not finite"
"""The reason that needs no words sent around."""


class GroupRanks:
    """The ranks of a group (None: all), whose numbers lie on one kind of device."""

    def __init__(self, group: dist.ProcessGroup | None, device: torch.device) -> None:
        self.group, self.device = group, device

    def add(self, numbers: Tensor) -> Tensor:
        dist.all_reduce(numbers, group=self.group)
        return numbers

    def find_most(self, numbers: Tensor) -> Tensor:
        dist.all_reduce(numbers, dist.ReduceOp.MAX, group=self.group)
        return numbers

    def pool(self, n: int, broken: Mapping[int, str]) -> dict[int, str]:
        """The rows that are broken on some rank: n numbers, and where there is more to say than "not finite" the words.

        The first rank that has something else to say is heard.
        """
        codes = [0 if row not in broken else 1 if broken[row] == NOT_FINITE else 2 for row in range(n)]
        worst = self.find_most(torch.tensor(codes, device=self.device)).tolist()
        found = {row: NOT_FINITE for row, code in enumerate(worst) if code}
        if 2 in worst:
            said: list[Any] = [None] * dist.get_world_size(self.group)
            dist.all_gather_object(said, dict(broken), group=self.group)
            for one in reversed(said):
                found |= {row: reason for row, reason in one.items() if reason != NOT_FINITE}
        return found

    def measure(self, stack: SharedStack, values: Sequence[Tensor]) -> Tensor:
        """Distances (n,) of the rows to the value over all columns, in float64 and without overflow."""
        pairs = [(k, leaf) for k, leaf in enumerate(stack.leaves) if k not in stack.repeated]
        own = torch.zeros(len(stack.kept), dtype=torch.float64, device="cpu")
        if pairs:
            own = measure(stack.counted(), [values[k] for k, _ in pairs])
        own = own.to(self.device)
        every = [torch.empty_like(own) for _ in range(dist.get_world_size(self.group))]
        dist.all_gather(every, own, group=self.group)
        parts = torch.stack(every).cpu()
        top = parts.amax(dim=0)
        length = (parts / top.where(top > 0, 1.0)).square().sum(dim=0).sqrt()
        return (top * length).clamp(max=torch.finfo(torch.float64).max)

    def share_draws(self, rule: Rule, generator: torch.Generator | None) -> torch.Generator | None:
        """A generator that draws on every rank what the first rank's would, for a rule that may draw.

        What is drawn is taken from the generator that was given on every rank, and from torch's own on the first alone:
        the others' go on as if nothing had been drawn.
        """
        if not any(mixer.draws for mixer in rule.mixers):
            return generator
        source = _find_default(self.device) if generator is None else generator
        state = source.get_state().to(self.device)
        first = 0 if self.group is None else dist.get_global_rank(self.group, 0)
        dist.broadcast(state, first, group=self.group)
        if generator is None and dist.get_rank(self.group) > 0:
            source = torch.Generator(source.device)
        source.set_state(state.cpu())
        return source


class WholeRanks(GroupRanks):
    """Ranks that each hold all columns: there is nothing to sum, but draws are the first rank's all the same."""

    def add(self, numbers: Tensor) -> Tensor:
        return numbers

    def find_most(self, numbers: Tensor) -> Tensor:
        return numbers

    def pool(self, n: int, broken: Mapping[int, str]) -> dict[int, str]:
        return dict(broken)

    def measure(self, stack: SharedStack, values: Sequence[Tensor]) -> Tensor:
        return measure(stack, values)


def find_device(group: dist.ProcessGroup | None) -> torch.device:
    """Where a group's messages must lie, for who has no tensor to go by."""
    return (
        torch.device("cuda", torch.cuda.current_device()) if dist.get_backend(group) == "nccl" else torch.device("cpu")
    )


def _find_default(device: torch.device) -> torch.Generator:
    """Torch's own generator for a device."""
    if device.type == "cuda":
        return torch.cuda.default_generators[torch.cuda.current_device() if device.index is None else device.index]
    return torch.default_generator
