"""Who holds what: the base of all splits of a training set over clients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from robagg._core.contract import Attribution, PluginError, describe
from robagg._core.registry import Named, Registry


class Split(Named, ABC):
    """Deals the samples to n clients: the h = n - f honest ones first, the f Byzantine ones last.

    A split of your own is a frozen dataclass with one method, `deal`.

    Example:
        >>> from robagg.splits import IID
        >>> labels = torch.arange(10).repeat(6)
        >>> shards = IID().split(labels, n=4, f=1, generator=torch.Generator().manual_seed(0))
        >>> [len(shard) for shard in shards]
        [20, 20, 20, 20]
    """

    takes_measured: ClassVar[bool] = False
    """Whether labels may be measured values, as in a regression."""

    def split(self, labels: Tensor, n: int, f: int, *, generator: torch.Generator) -> list[Tensor]:
        """Indices into the training set, one int64 tensor per client.

        The honest shards do not overlap. A Byzantine shard is drawn from the whole training set, without
        replacement, and is as large as an honest one is on average.

        Args:
            labels: (N,) integers, or measured values where the split takes them.
            n: number of clients.
            f: how many of them are Byzantine; they come last.
            generator: all that is random comes from it.
        """
        if labels.ndim != 1 or (labels.is_floating_point() and not self.takes_measured):
            kind = "number" if self.takes_measured else "integer"
            raise ValueError(f"labels must be one {kind} per sample, got {labels.dtype} of shape {tuple(labels.shape)}")
        if not 0 <= f < n:
            raise ValueError(f"f must be from 0 to n-1, so that a client is honest, got n={n}, f={f}")
        h = n - f
        if len(labels) < h:
            raise ValueError(f"labels must be one or more for each of {h} honest clients, got {len(labels)}")
        with Attribution(self, "deal"):
            honest = self.deal(labels.cpu(), h, generator)
        if not isinstance(honest, list) or len(honest) != h:
            came = f"{len(honest)} shards" if isinstance(honest, list) else describe(honest)
            raise PluginError(f"{self}: deal must return a list of {h} shards, got {came}")
        for k, shard in enumerate(honest):
            if not isinstance(shard, Tensor) or shard.dtype != torch.int64 or shard.ndim != 1 or not len(shard):
                came = f"{shard.dtype} {tuple(shard.shape)}" if isinstance(shard, Tensor) else describe(shard)
                raise PluginError(f"{self}: each shard must be an int64 tensor of a sample or more, got {came} at {k}")
        byzantine = [shuffle(len(labels), generator)[: len(labels) // h] for _ in range(f)]
        return [*honest, *byzantine]

    @abstractmethod
    def deal(self, labels: Tensor, h: int, generator: torch.Generator) -> list[Tensor]:
        """The h honest shards: disjoint, none of them empty. There are at least h labels."""


def shuffle(count: int, generator: torch.Generator) -> Tensor:
    """0 to count - 1 in random order, on the CPU.

    Example:
        >>> sorted(shuffle(3, torch.Generator()).tolist())
        [0, 1, 2]
    """
    return torch.randperm(count, generator=generator, device=generator.device).cpu()


def sizes_of(count: int, h: int) -> list[int]:
    """Sizes of h parts that differ by one at most, the larger first.

    Example:
        >>> sizes_of(10, 4)
        [3, 3, 2, 2]
    """
    return [count // h + (i < count % h) for i in range(h)]


splits: Registry[Split] = Registry("split", Split, "robagg.splits")  # type: ignore[type-abstract]
