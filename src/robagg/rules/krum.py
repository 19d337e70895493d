"""Krum: the one row with the closest company."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from robagg._core.choosing import add_distances, pick_least
from robagg._core.outcome import Weights
from robagg._core.rule import GramRule
from robagg._core.sketch import Sketch
from robagg._core.tolerance import F


@dataclass(frozen=True)
class Krum(GramRule):
    """The row with the least sum of squared distances to its n-f nearest rows, itself included. Ties: the lowest index.

    With client weights the nearest n-f votes count, its own first.

    This is the revised Krum of Allouah et al.; the first definition sums over n-f-2 others.

    Args:
        f: how many rows may be Byzantine (a number, a share, or None for the most that n allows).

    Example:
        >>> x = torch.tensor([[1.0], [1.1], [0.9], [50.0]])
        >>> Krum(f=1)(x)
        tensor([1.])

    References:
        Blanchard, El Mhamdi, Guerraoui, Stainer: Machine Learning with Adversaries, NeurIPS 2017, arXiv:1703.02757.
        Allouah et al.: Fixing by Mixing, AISTATS 2023, arXiv:2302.01772.
    """

    f: F = None
    takes_weights: ClassVar[bool] = True

    def weights(self, sketch: Sketch) -> Weights:
        return Weights(sketch.on_rows(pick_least(add_distances(sketch))))
