"""A split of your own: which samples each of the h honest clients holds."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from robagg import Split
from robagg.splits import shuffle


@dataclass(frozen=True)
class Unequal(Split):
    """Drawn alike, but the last client holds `ratio` times as much as the first.

    Args:
        ratio: of the largest shard to the smallest, from 1 on.
    """

    ratio: float = 4.0

    def __post_init__(self) -> None:
        if not self.ratio >= 1:
            raise ValueError(f"ratio must be at least 1, got {self.ratio}")

    def deal(self, labels: Tensor, h: int, generator: torch.Generator) -> list[Tensor]:
        shares = torch.linspace(1, self.ratio, h, dtype=torch.float64)
        # Everyone gets one sample, so that nobody is left without; the rest is dealt by share.
        ends = (shares.cumsum(0) / shares.sum() * (len(labels) - h)).round().long() + torch.arange(1, h + 1)
        return list(torch.tensor_split(shuffle(len(labels), generator), ends[:-1].tolist()))
