"""The paper's split: a share of the data is dealt by label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from robagg.splits.base import Split, shuffle, sizes_of


@dataclass(frozen=True)
class Rho(Split):
    """Shuffle; deal the first 1 - rho evenly; sort the rest by label and deal it in contiguous blocks.

    rho=0 is IID; rho=1 gives each client one label or a few. Sizes differ by one at most.

    Args:
        rho: the share that is sorted, in [0, 1].

    Example:
        >>> labels = torch.tensor([1, 0, 1, 0])
        >>> shards = Rho(rho=1.0).split(labels, n=2, f=0, generator=torch.Generator())
        >>> [labels[shard].tolist() for shard in shards]
        [[0, 0], [1, 1]]
    """

    rho: float = 0.5
    takes_measured: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 <= self.rho <= 1:
            raise ValueError(f"rho must lie in [0, 1], got {self.rho}")

    def deal(self, labels: Tensor, h: int, generator: torch.Generator) -> list[Tensor]:
        order = shuffle(len(labels), generator)
        even = round((1 - self.rho) * len(labels))
        mixed, rest = order[:even], order[even:]
        rest = rest[labels[rest].sort(stable=True).indices]
        mixed_sizes = sizes_of(even, h)
        # The blocks fill each client up to its even share of the whole, so that two remainders do not add up.
        rest_sizes = [whole - part for whole, part in zip(sizes_of(len(labels), h), mixed_sizes, strict=True)]
        parts = zip(torch.split(mixed, mixed_sizes), torch.split(rest, rest_sizes), strict=True)
        return [torch.cat(pair) for pair in parts]
