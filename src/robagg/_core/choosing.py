"""Means of chosen rows: of the n-f that score least, or that lie nearest to one of them."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from robagg._core.outcome import Weights
from robagg._core.sketch import Sketch


def average_least(sketch: Sketch, scores: Tensor, count: int | None = None, *, slack: Tensor | float = 0.0) -> Weights:
    """The mean of the `count` rows (or votes) with the least scores (n,), n-f unless given. Ties: the lower index.

    Rounding may part rows whose scores are equal by up to `slack`.
    """
    count = sketch.total - sketch.f if count is None else count
    least, order = scores.sort(stable=True)
    if isinstance(slack, Tensor):
        last = count - 1 if sketch.votes is None else (sketch.first_votes(order, count) > 0).sum() - 1
        cut = least[last]
        order = scores.where((scores - cut).abs() > slack, cut).sort(stable=True).indices
    share = torch.zeros(sketch.n, dtype=torch.float64, device=order.device)
    if sketch.votes is not None:
        return Weights(sketch.on_rows(share.scatter(0, order, sketch.first_votes(order, count).double() / count)))
    return Weights(sketch.on_rows(share.index_fill(0, order[:count], 1 / count)))


def pick_least(scores: Tensor) -> Tensor:
    """1 for the row with the least score (n,), 0 for the others (n,) float64. Ties: the lower index."""
    index = torch.arange(len(scores), device=scores.device)
    best = torch.where(scores == scores.min(), index, len(scores)).min()
    return (index == best).double()


def settle(sketch: Sketch) -> Sketch:
    """The sketch with a Gram matrix that is symmetric to the last bit.

    Behind a pre-aggregator it is so only up to rounding, and ties must not be settled by that.
    """
    return replace(sketch, gram=torch.maximum(sketch.gram, sketch.gram.T))


def add_distances(sketch: Sketch) -> Tensor:
    """Each row's sum of squared distances (n,) to its n-f nearest rows; a row without votes is chosen last."""
    if sketch.votes is None:
        return sketch.sum_nearest()
    even = settle(sketch)
    return even.voting((even.company() * even.pairwise()).sum(dim=1))


def reach(sketch: Sketch) -> Tensor:
    """Each row's squared distance (n,) to the farthest of its n-f nearest; a row without votes is chosen last."""
    even = settle(sketch)
    if even.votes is None:
        return even.neighbours()[0][:, -1]
    return even.voting(even.pairwise().where(even.company() > 0, 0.0).amax(dim=1))
