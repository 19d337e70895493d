"""Nearest-neighbour mixing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from robagg._core.mixer import Mixer
from robagg._core.sketch import Sketch
from robagg._core.tolerance import F


@dataclass(frozen=True)
class NNM(Mixer):
    """Each row becomes the mean of its n-f nearest rows, itself included.

    With client weights, of the n-f votes nearest to it, its own first; it keeps its votes.

    Args:
        f: how many rows may be Byzantine (a number, a share, or None for the most that n allows).

    Example:
        >>> from robagg import CM
        >>> (NNM(f=1) >> CM(f=1))(torch.tensor([[1.0], [2.0], [3.0], [90.0]]))
        tensor([2.])

    References:
        Allouah, Farhadkhani, Guerraoui, Gupta, Pinot, Stephan: Fixing by Mixing, AISTATS 2023, arXiv:2302.01772.
    """

    f: F = None
    shares_rows: ClassVar[bool] = True
    draws: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = True

    def matrix(self, sketch: Sketch, *, generator: torch.Generator | None = None) -> Tensor:
        return sketch.nearest_means()
