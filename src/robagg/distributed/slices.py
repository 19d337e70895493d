"""A bucket of gradients on its way: in slices, to the rank that decides on one and back, or whole, to every rank."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from robagg.distributed.group import GroupRanks, WholeRanks

SMALL = 1 << 18
"""Numbers of all ranks together up to which a gradient is sent whole: a message takes longer than what is in it."""


def send(bucket: Any, group: dist.ProcessGroup | None, spare: dict[int, Tensor]) -> Slices | Whole:
    """A bucket on its way, the same way on every rank."""
    alone = bucket.index() == 0 and bucket.is_last()
    small = alone and dist.get_world_size(group) * bucket.buffer().numel() <= SMALL
    return Whole(bucket, group) if small else Slices(bucket, group, spare)


class Slices:
    """One bucket: each rank gets a slice of it from all, and sends back what becomes of that slice."""

    def __init__(self, bucket: Any, group: dist.ProcessGroup | None, spare: dict[int, Tensor]) -> None:
        self.group, self.whole = group, bucket.buffer()
        self.ranks = GroupRanks(group, self.whole.device)
        self.layout = [id(parameter) for parameter in bucket.parameters()]
        self.future = make_future(self.whole.device)
        n, d = dist.get_world_size(group), self.whole.numel()
        width = -(-d // n)
        self.sizes = [max(0, min(width, d - rank * width)) for rank in range(n)]
        own = self.sizes[dist.get_rank(group)]
        rows = spare.get(bucket.index())
        if rows is None or rows.shape != (n, own) or rows.dtype != self.whole.dtype:
            rows = spare[bucket.index()] = self.whole.new_empty(n, own)
        self.rows = rows
        self.work = dist.all_to_all_single(rows.view(-1), self.whole, [own] * n, self.sizes, group=group, async_op=True)

    def wait(self) -> Tensor:
        """The slice of every rank (n, own)."""
        self.work.wait()
        return self.rows

    def send_back(self, value: Tensor) -> None:
        """Start to give every rank this one's part of the value, and to take theirs."""
        # Slices need not be of one length, as all_gather wants them: so the same message goes the other way.
        self.rows.copy_(value)
        own = [len(value)] * len(self.sizes)
        self.work = dist.all_to_all_single(
            self.whole, self.rows.view(-1), self.sizes, own, group=self.group, async_op=True
        )

    def finish(self) -> None:
        self.work.wait()
        self.future.set_result(self.whole)


class Whole:
    """A small gradient: every rank gets it from all, and computes all of the value."""

    def __init__(self, bucket: Any, group: dist.ProcessGroup | None) -> None:
        self.whole = bucket.buffer()
        self.ranks = WholeRanks(group, self.whole.device)
        self.layout = [id(parameter) for parameter in bucket.parameters()]
        self.future = make_future(self.whole.device)
        self.rows: Tensor = self.whole.new_empty(dist.get_world_size(group), self.whole.numel())
        self.work = dist.all_gather_into_tensor(self.rows.view(-1), self.whole, group=group, async_op=True)

    def wait(self) -> Tensor:
        """The gradient of every rank (n, d)."""
        self.work.wait()
        return self.rows

    def send_back(self, value: Tensor) -> None:
        """Put the value where the gradient was: the other ranks have it too."""
        self.whole.copy_(value)

    def finish(self) -> None:
        self.future.set_result(self.whole)


def make_future(device: torch.device) -> torch.futures.Future[Tensor]:
    """What DDP waits for."""
    on: list[int | str | torch.device] = [] if device.type == "cpu" else [device]
    return torch.futures.Future(devices=on)
