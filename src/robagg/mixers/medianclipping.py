"""Clipping to the median length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from robagg._core.checks import read_positive
from robagg._core.mixer import Mixer
from robagg._core.sketch import Sketch, middle
from robagg.mixers.clipping import clip_rows, measure_rows


@dataclass(frozen=True)
class MedianClipping(Mixer):
    """Every row longer than the median length is scaled down to it; with client weights, than the weighted median.

    It measures from the origin, so adding a constant vector to all rows does not just shift the result.

    Args:
        times: how many times the median length a row may be.

    Example:
        >>> from robagg import Mean
        >>> (MedianClipping() >> Mean())(torch.tensor([[1.0], [2.0], [90.0]]))
        tensor([1.6667])

    References:
        Xu, Huang, Song, Lan: Byzantine-robust Federated Learning through Collaborative Malicious Gradient Filtering
        (SignGuard), ICDCS 2022, arXiv:2109.05872.
    """

    times: float = 1.0
    takes_weights: ClassVar[bool] = True
    anchors: ClassVar[tuple[str, ...]] = ("origin",)

    def __post_init__(self) -> None:
        super().__post_init__()
        read_positive(self, "times")

    def matrix(self, sketch: Sketch, *, generator: torch.Generator | None = None) -> Tensor:
        lengths = measure_rows(sketch)
        return clip_rows(sketch, lengths, self.times * middle(lengths, sketch.votes))
