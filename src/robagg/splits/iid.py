"""Every client's samples are drawn alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from robagg.splits.base import Split, shuffle, sizes_of


@dataclass(frozen=True)
class IID(Split):
    """Shuffle and deal evenly: sizes differ by one at most.

    Example:
        >>> shards = IID().split(torch.zeros(7, dtype=torch.int64), n=3, f=0, generator=torch.Generator())
        >>> [len(shard) for shard in shards]
        [3, 2, 2]
    """

    takes_measured: ClassVar[bool] = True

    def deal(self, labels: Tensor, h: int, generator: torch.Generator) -> list[Tensor]:
        return list(torch.split(shuffle(len(labels), generator), sizes_of(len(labels), h)))
