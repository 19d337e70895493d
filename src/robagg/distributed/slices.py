"""A bucket of gradients in slices, one a rank: from all ranks to the one that decides on a slice, and back to all."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


class Slices:
    """One bucket: each rank gets a slice of it from all, and sends back what becomes of that slice."""

    def __init__(self, bucket: Any, group: dist.ProcessGroup | None, spare: dict[int, Tensor]) -> None:
        self.group, self.whole = group, bucket.buffer()
        self.layout = [id(parameter) for parameter in bucket.parameters()]
        on: list[int | str | torch.device] = [] if self.whole.device.type == "cpu" else [self.whole.device]
        self.future: torch.futures.Future[Tensor] = torch.futures.Future(devices=on)
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
