"""Clipping to a norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from robagg._core.alias import Alias
from robagg._core.checks import read_positive
from robagg._core.mixer import Mixer
from robagg._core.sketch import Sketch


@dataclass(frozen=True)
class Clipping(Mixer):
    """Every row longer than `norm` is scaled down to it.

    It measures from the origin, so adding a constant vector to all rows does not just shift the result.

    Args:
        norm: the longest that a row may be.

    Example:
        >>> from robagg import Mean
        >>> (Clipping(norm=2.0) >> Mean())(torch.tensor([[1.0], [2.0], [90.0]]))
        tensor([1.6667])

    References:
        Sun, Kairouz, Suresh, McMahan: Can You Really Backdoor Federated Learning?, 2019, arXiv:1911.07963.
    """

    norm: float = 1.0
    draws: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = True
    aliases: ClassVar[tuple[str, ...]] = (Alias("Clipping", {"c": "norm"}),)
    anchors: ClassVar[tuple[str, ...]] = ("origin",)

    def __post_init__(self) -> None:
        super().__post_init__()
        read_positive(self, "norm")

    def matrix(self, sketch: Sketch, *, generator: torch.Generator | None = None) -> Tensor:
        lengths = measure_rows(sketch)
        return clip_rows(sketch, lengths, lengths.new_full((), self.norm * sketch.unit))


def measure_rows(sketch: Sketch) -> Tensor:
    """The length (n,) of each row, of a sketch that has the origin."""
    return sketch.squared_distances(sketch.at("origin")).sqrt()


def clip_rows(sketch: Sketch, lengths: Tensor, most: Tensor) -> Tensor:
    """The matrix (n, n+a) that scales rows of these lengths (n,) down to the longest that may be ()."""
    scale = (most / lengths).nan_to_num(1.0).clamp(max=1.0)  # where both are 0 nothing is to be scaled
    # What a row loses is the origin's: the rows of the matrix go on summing to one.
    return torch.diag(sketch.on_rows(scale))[: sketch.n] + (1 - scale)[:, None] * sketch.at("origin")
