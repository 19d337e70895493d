"""MNIST with the paper's CNN."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from torch import nn

from robagg._core.registry import LATER
from robagg.data import Dataset, load
from robagg.models.build import build, find_model
from robagg.tasks.base import Task
from robagg.training import Settings


@dataclass(frozen=True)
class MNIST(Task):
    """Handwritten digits, 28 x 28, on the paper's CNN of 1,199,882 parameters.

    n=20, b=32, mu=0.99, lambda=0.02, T=1500.

    Args:
        model: cnn, or mlp (50,890 parameters), with which a run takes seconds on a CPU.
    """

    model: str = field(default="cnn", metadata=LATER)
    loss: ClassVar[str] = "nll"
    settings: ClassVar[Settings] = Settings(rounds=1500, batch=32, momentum=0.99, rate=0.02)

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", find_model(self.model))

    def load(self, root: str | Path | None = None) -> Dataset:
        return load("mnist", root)

    def build(self, dataset: Dataset, seed: int) -> nn.Module:
        model = build(self.model, dataset.classes, dataset.shape, seed=seed)
        return model if self.model == "cnn" else nn.Sequential(model, nn.LogSoftmax(dim=1))
