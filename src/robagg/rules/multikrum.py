"""Multi-Krum: the mean of the rows with the closest company."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from robagg._core.choosing import add_distances, average_least
from robagg._core.outcome import Weights
from robagg._core.rule import GramRule
from robagg._core.sketch import Sketch
from robagg._core.tolerance import F


@dataclass(frozen=True)
class MultiKrum(GramRule):
    """The mean of the n-f rows with the least Krum scores. Ties: the lower index.

    With client weights, of the n-f votes with the least scores.

    Args:
        f: how many rows may be Byzantine (a number, a share, or None for the most that n allows).

    Example:
        >>> x = torch.tensor([[1.0], [1.1], [0.9], [50.0]])
        >>> MultiKrum(f=1)(x)
        tensor([1.])

    References:
        Blanchard, El Mhamdi, Guerraoui, Stainer: Machine Learning with Adversaries, NeurIPS 2017, arXiv:1703.02757.
        Allouah et al.: Fixing by Mixing, AISTATS 2023, arXiv:2302.01772.
    """

    f: F = None
    takes_weights: ClassVar[bool] = True

    def weights(self, sketch: Sketch) -> Weights:
        return average_least(sketch, add_distances(sketch))
