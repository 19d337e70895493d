"""Fashion-MNIST with the paper's CNN."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from robagg.data import Dataset, load
from robagg.tasks.mnist import MNIST


@dataclass(frozen=True)
class Fashion(MNIST):
    """Articles of clothing, 28 x 28, on the paper's CNN, trained as MNIST.

    Args:
        model: cnn, or mlp, as for MNIST.
    """

    aliases: ClassVar[tuple[str, ...]] = ("fashion-mnist",)

    def load(self, root: str | Path | None = None) -> Dataset:
        return load("fashion-mnist", root)

    @property
    def title(self) -> str:
        return "Fashion-MNIST"
