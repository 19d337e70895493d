"""ARC: adaptive robust clipping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from robagg._core.mixer import Mixer
from robagg._core.sketch import Sketch
from robagg._core.tolerance import F
from robagg.mixers.clipping import clip_rows, measure_rows


@dataclass(frozen=True)
class ARC(Mixer):
    """The `floor(2 f (n-f) / n)` longest rows are scaled down to the length of the next.

    With client weights so many of the longest votes, of all T with F that may be Byzantine: `floor(2 F (T-F) / T)`. It
    measures from the origin, so adding a constant vector to all rows does not just shift the result.

    Args:
        f: how many rows may be Byzantine (a number, a share, or None for the most that n allows).

    Example:
        >>> from robagg import Mean
        >>> (ARC(f=1) >> Mean())(torch.tensor([[1.0], [2.0], [3.0], [90.0]]))
        tensor([2.2500])

    References:
        Allouah, Guerraoui, Gupta, Jellouli, Rizk, Stephan: Adaptive Gradient Clipping for Robust Federated Learning,
        ICLR 2025, arXiv:2405.14432.
    """

    f: F = None
    takes_weights: ClassVar[bool] = True
    anchors: ClassVar[tuple[str, ...]] = ("origin",)

    def matrix(self, sketch: Sketch, *, generator: torch.Generator | None = None) -> Tensor:
        lengths = measure_rows(sketch)
        longest = lengths.sort(descending=True, stable=True)
        clipped = 2 * sketch.f * (sketch.total - sketch.f) // sketch.total
        if sketch.votes is None:
            return clip_rows(sketch, lengths, longest.values[clipped])
        ends = sketch.votes[longest.indices].cumsum(dim=0)
        return clip_rows(sketch, lengths, longest.values.where(ends > clipped, 0.0).max())
