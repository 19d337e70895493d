"""A pre-aggregator of your own: a matrix whose rows say which weighted sums of the rows go on to the rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from robagg import F, Mixer, Sketch


@dataclass(frozen=True)
class Shrink(Mixer):
    """Each row moves some of the way to the mean of all rows.

    Args:
        f: how many rows may be Byzantine.
        way: how far, from 0 (not at all) to 1 (all of it).
    """

    needs_distances: ClassVar[bool] = False
    f: F = None
    way: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.way <= 1:
            raise ValueError(f"way must lie in [0, 1], got {self.way}")

    def matrix(self, sketch: Sketch, *, generator: torch.Generator | None = None) -> Tensor:
        matrix = sketch.gram.new_zeros(sketch.n, len(sketch.gram))
        matrix[:, : sketch.n] = self.way / sketch.n
        matrix.diagonal()[: sketch.n] += 1 - self.way
        return matrix
