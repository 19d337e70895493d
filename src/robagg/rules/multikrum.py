"""Multi-Krum: the mean of the rows with the closest company."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from robagg._core.outcome import Weights
from robagg._core.rule import GramRule
from robagg._core.sketch import Sketch
from robagg._core.tolerance import F
from robagg.rules.krum import score


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
        count = sketch.total - sketch.f
        order = score(sketch).sort(stable=True).indices
        share = torch.zeros(sketch.n, dtype=torch.float64, device=order.device)
        if sketch.votes is not None:
            return Weights(sketch.on_rows(share.scatter(0, order, sketch.first_votes(order, count).double() / count)))
        best = order[:count]
        return Weights(sketch.on_rows(share.index_fill(0, best, 1 / count)))
