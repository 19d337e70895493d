"""A task of your own: data, a model for it, and how it is trained unless a sweep says otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import nn

from robagg import Dataset, Settings, Task


@dataclass(frozen=True)
class Blobs(Task):
    """Points around the corners of a square, separated by a small network.

    Args:
        spread: how far they lie from their corner.
    """

    spread: float = 0.6
    n: ClassVar[int] = 12
    settings: ClassVar[Settings] = Settings(rounds=60, batch=16, momentum=0.9, rate=0.2)

    def load(self, root: str | Path | None = None) -> Dataset:
        """The data are the same for every seed of a run; `root` is the folder that --data names."""
        generator = torch.Generator().manual_seed(0)
        corners = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
        y = torch.arange(1200) % 4
        x = corners[y] + self.spread * torch.randn(1200, 2, generator=generator)
        return Dataset("blobs", x[:1000], y[:1000], x[1000:], y[1000:], classes=4)

    def build(self, dataset: Dataset, seed: int) -> nn.Module:
        """The initial weights depend on the seed alone."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, dataset.classes))
