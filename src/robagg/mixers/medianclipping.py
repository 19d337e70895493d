"""Clipping to the median length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from robagg._core.sketch import Sketch, middle
from robagg._core.stage import Mixer
from robagg.mixers.clipping import clip_rows, measure_rows


@dataclass(frozen=True)
class MedianClipping(Mixer):
    """Every row longer than the median length is scaled down to it; with client weights, than the weighted median.

    It measures from the origin, so adding a constant vector to all rows does not just shift the result.

    Example:
        >>> from robagg import Mean
        >>> (MedianClipping() >> Mean())(torch.tensor([[1.0], [2.0], [90.0]]))
        tensor([1.6667])

    References:
        Xu, Huang, Song, Lan: Byzantine-robust Federated Learning through Collaborative Malicious Gradient Filtering
        (SignGuard), ICDCS 2022, arXiv:2109.05872.
    """

    takes_weights: ClassVar[bool] = True
    anchors: ClassVar[tuple[str, ...]] = ("origin",)

    def matrix(self, sketch: Sketch, *, generator: torch.Generator | None = None) -> Tensor:
        lengths = measure_rows(sketch)
        return clip_rows(sketch, lengths, middle(lengths, sketch.votes))
