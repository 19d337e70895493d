"""DnC: without the rows that stick out along the direction of most variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from robagg._core.checks import read_positive
from robagg._core.choosing import average_least
from robagg._core.filtering import examine
from robagg._core.outcome import Weights
from robagg._core.rule import GramRule
from robagg._core.sketch import Sketch
from robagg._core.tolerance import F


@dataclass(frozen=True)
class DnC(GramRule):
    """Divide and conquer: the mean of the rows with the least `<x_i - mean, v>^2`, v the direction of most variance.

    `drop` f of them are dropped, in whole rows, and one is always left. The definition looks at a random sample of the
    coordinates a few times over, for want of memory; the n x n matrix has all of them, so one look does. Where several
    directions have the largest variance, a row's part in all of them counts. Far rows move the mean itself: with f near
    n/2, or Byzantine rows at different distances on one line, the nearest may lie nearer to it than honest rows do.

    Args:
        f: how many rows may be Byzantine (a number, a share, or None for the most that n allows).
        drop: how many times f rows are dropped; the paper's c.

    Example:
        >>> DnC(f=1)(torch.tensor([[1.0], [2.0], [3.0], [50.0]]))
        tensor([2.])

    References:
        Shejwalkar, Houmansadr: Manipulating the Byzantine: Optimizing Model Poisoning Attacks and Defenses for
        Federated Learning, NDSS 2021.
    """

    maps_well: ClassVar[bool] = False
    f: F = None
    takes_weights: ClassVar[bool] = True
    drop: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        read_positive(self, "drop")

    def weights(self, sketch: Sketch) -> Weights:
        share = sketch.count(torch.ones(sketch.n, dtype=torch.float64, device=sketch.gram.device)) / sketch.total
        gram = sketch.gram[: sketch.n, : sketch.n]
        _, along = examine(gram / gram.diagonal().max().clamp(min=torch.finfo(gram.dtype).tiny), share)
        return average_least(sketch, along, max(sketch.total - int(self.drop * sketch.f), 1))
