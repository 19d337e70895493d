"""CIFAR-10 with ResNet-20."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor, nn

from robagg._core.registry import LATER
from robagg.data import Dataset, crop_and_flip, load
from robagg.data.sources import SOURCES
from robagg.models import build
from robagg.tasks.base import Task
from robagg.training import Settings


@dataclass(frozen=True)
class CIFAR10(Task):
    """Colour images, 32 x 32, on ResNet-20: n=25, b=32, mu=0.9, lambda=0.1 and a tenth of it from 0.75 T on, T=3000.

    Args:
        augment: random crops with padding 4 and flips in training (the paper does not say).
        border: what crops show outside an image: its "mean" pixel, as where images are normalised first, or "black", as
            where they are cropped first.
    """

    augment: bool = True
    border: str = field(default="mean", metadata=LATER)
    n: ClassVar[int] = 25
    settings: ClassVar[Settings] = Settings(rounds=3000, batch=32, momentum=0.9, rate=0.1, schedule=((0.75, 0.1),))

    def __post_init__(self) -> None:
        if self.border not in ("mean", "black"):
            raise ValueError(f"border must be 'mean' or 'black', got {self.border!r}")

    def load(self, root: str | Path | None = None) -> Dataset:
        return load("cifar10", root)

    def build(self, dataset: Dataset, seed: int) -> nn.Module:
        return build("resnet20", dataset.classes, dataset.shape, seed=seed)

    @property
    def transform(self) -> Callable[[Tensor, torch.Generator], Tensor] | None:
        return partial(crop_and_flip, border=self.outside) if self.augment else None

    @property
    def outside(self) -> tuple[float, ...]:
        """The border's value in each channel of normalised images; empty: zeros."""
        source = SOURCES["cifar10"]
        black = tuple(-mean / std for mean, std in zip(source.mean, source.std, strict=True))
        return black if self.border == "black" else ()

    @property
    def title(self) -> str:
        return "CIFAR-10"
