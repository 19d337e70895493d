"""The loop of the filters: rows that stick out along the direction of most variance lose weight, step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from robagg import kernels
from robagg._core.directions import Directions, sum_least
from robagg._core.outcome import Weights
from robagg._core.sketch import Sketch

MOST = 512
"""Rows up to which each step of a filter squares their matrix; beyond, its top directions are found by power steps."""
SQUARINGS = 20
"""A matrix squared so often is the projector on its top eigenvectors, unless eigenvalues agree to five digits."""
REFINE = 10
"""Steps beyond 2f for filters that do not take the whole weight of a row in a step."""
OUT = 1e-9
"""A row below this part of a full vote has lost its weight."""
FARTHEST = 1e-12
"""No unit is below this part of the largest squared length."""
SLACK = 1e-9
"""What is decided by less than this part is decided by rounding: the earlier step and the end are preferred."""


def filter_rows(sketch: Sketch, standout: float = 0.0) -> Weights:
    """The weights of a filter on a sketch, with what it left of each row's weight.

    Args:
        sketch: the rows, about any centre.
        standout: how many times its share of the variance a direction may have before a filter looks at it; 0: none,
            and a step takes the whole weight of a row.
    """
    n, f = sketch.n, sketch.f * sketch.vote
    votes = sketch.count(torch.ones(n, dtype=torch.float64, device=sketch.gram.device)) * sketch.vote
    variance = spread = estimate_spread(sketch, votes)
    if sketch.scaled is not None:
        sketch = blend(sketch, variance, votes)
        spread = estimate_spread(sketch, votes)
    if sketch.votes is None:
        level = spread * (standout / max(n - 1, 1))
    else:
        share = (votes / n).square().sum()
        level = spread * standout * share / (1 - share).clamp(min=OUT)
    steps = count_steps(sketch) + (REFINE if f and standout else 0)
    left = kernels.weigh_down(sketch.gram, votes, f, level, steps)
    if left is None:
        way = weigh_down_many if n > MOST and sketch.gram.device.type == "cpu" else weigh_down
        left = way(sketch.gram[:n, :n], votes, f, level, steps)
    part = left if sketch.votes is None else (left / votes).where(votes > 0, 1.0)
    return Weights(sketch.on_rows(left / left.sum()), left=part, scale=variance.sqrt())


def count_steps(sketch: Sketch) -> int:
    """As many steps as can leave weights above n-2f, where each takes the whole weight of a row."""
    if sketch.votes is None or sketch.f == 0:
        return 2 * sketch.f
    lightest = sketch.votes[sketch.votes > 0].sort().values.cumsum(dim=0)
    return int((lightest < 2 * sketch.f).sum()) + 1


def weigh_down(gram: Tensor, votes: Tensor, f: float, level: Tensor, steps: int) -> Tensor:
    """What is left (n,) of each row's weight where the rows vary least in the direction in which they vary most.

    In the direction of the largest weighted variance a row loses the part of its weight that its squared distance from
    the weighted mean is of the largest such distance, but for the share of that variance that `level` is (one half at
    most). The steps end where no direction is beyond the level, or before the weights fall by 2f; of those up to there
    the weights with the least largest variance are the result.

    Args:
        gram: (n, n) inner products of the rows about any centre.
        votes: (n,) weights to start from.
        f: how many votes may be Byzantine.
        level: () the variance that may be there in any direction.
        steps: how many there are at most.
    """
    tiny = torch.finfo(torch.float64).tiny
    unit = gram.diagonal().max().clamp(min=tiny)
    gram = gram / unit
    return take_steps(partial(examine, gram), votes, f, level / unit, steps)


def weigh_down_many(gram: Tensor, votes: Tensor, f: float, level: Tensor, steps: int) -> Tensor:
    """The same for many rows: no step multiplies two (n, n) matrices, and none is made after the last."""
    unit = gram.diagonal().max().clamp(min=torch.finfo(torch.float64).tiny)
    return take_steps(Directions(gram, unit), votes, f, level / unit, steps, asks=True)


def take_steps(
    examine: Callable[[Tensor], tuple[Tensor, Tensor]],
    votes: Tensor,
    f: float,
    level: Tensor,
    steps: int,
    *,
    asks: bool = False,
) -> Tensor:
    """What the steps of `weigh_down` leave, by the largest variance and the rows' squares that `examine` gives."""
    tiny = torch.finfo(torch.float64).tiny
    c, best, least, alive = votes, votes, torch.full_like(votes[0], torch.inf), torch.ones_like(votes[0])
    total = votes.sum()
    for _ in range(steps):
        share = c / c.sum()
        spread, along = examine(share)
        better = (spread < least * (1 - SLACK)) & (alive > 0)
        least, best = torch.where(better, spread, least), torch.where(better, c, best)
        alive = alive * (spread > level * (1 + SLACK))
        top = torch.where(c > OUT, along, 0.0).max().clamp(min=tiny)
        gentle = (level / spread.clamp(min=tiny)).clamp(max=0.5)
        left = c * (1 - (1 - gentle) * (along / top).clamp(max=1))
        left = torch.where(left > OUT, left, 0.0)
        alive = alive * (left.sum() > total - 2 * f + SLACK * total)
        c = torch.where(alive > 0, left, c)
        if asks and not bool(alive):
            break
    return best


def blend(sketch: Sketch, variance: Tensor, votes: Tensor) -> Sketch:
    """The sketch in which a squared distance is the plain one and the scaled one, each in units of its variance."""
    assert sketch.scaled is not None
    other = replace(sketch, gram=sketch.scaled, scaled=None)
    grams = [
        # Where honest rows coincide, those that do not are far by any unit.
        gram / torch.maximum(unit, gram.diagonal().max() * FARTHEST).clamp(min=torch.finfo(torch.float64).tiny)
        for gram, unit in ((sketch.gram, variance), (other.gram, estimate_spread(other, votes)))
    ]
    return replace(sketch, gram=grams[0] + grams[1], scaled=None)


def estimate_spread(sketch: Sketch, votes: Tensor) -> Tensor:
    """The honest rows' variance () or less, by whatever distances the sketch has."""
    f = sketch.f * sketch.vote
    if sketch.votes is None:
        return estimate_variance(sketch.gram, sketch.n, f)
    return estimate_weighted_variance(sketch.pairwise(), votes, f)


def estimate_variance(gram: Tensor, n: int, f: float) -> Tensor:
    """Half the mean () of the (n-f)(n-f-1)/2 least squared distances between n rows, from their inner products.

    So many pairs are honest, and the nearest are no farther apart than those: it is at most the honest rows' variance.
    """
    honest = int(n - f + SLACK)
    count = honest * (honest - 1) // 2
    if n > MOST and gram.device.type == "cpu":
        return sum_least(gram, n, count) / max(2 * count, 1)
    i, j = torch.tril_indices(n, n, -1, device=gram.device)
    length = gram.diagonal()
    squared = (length[:n, None] + length[:n] - 2 * gram[:n, :n]).clamp(min=0)
    return squared[i, j].sort().values[:count].sum() / max(2 * count, 1)


def estimate_weighted_variance(squared: Tensor, votes: Tensor, f: float) -> Tensor:
    """The same () where rows have votes (n,), and a pair counts the product of its two.

    Honest rows that hold all but f votes have the fewest pairs where they are the heaviest.
    """
    i, j = torch.tril_indices(len(squared), len(squared), -1, device=squared.device)
    nearest, order = squared[i, j].sort()
    ends = votes.sort(descending=True).values.cumsum(dim=0).clamp(max=votes.sum() - f)
    held = ends.diff(prepend=ends.new_zeros(1))
    pairs = (ends[-1].square() - held.square().sum()) / 2
    pairs = pairs.where(pairs > OUT, 0.0)  # one client may hold all of it, but for rounding
    counted = (votes[i] * votes[j])[order].cumsum(dim=0).clamp(max=pairs)
    taken = counted.diff(prepend=counted.new_zeros(1))
    return (taken * nearest).sum() / (2 * pairs).clamp(min=OUT)


def examine(gram: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """The largest variance () of rows with these shares (n,) in any direction, and their squares (n,) along it.

    Where several directions have that variance, a row's square is that of its part in all of them: no order of the
    rows and no draw decides.
    """
    tiny = torch.finfo(torch.float64).tiny
    product = gram @ share
    centred = gram - product[:, None] - product + share @ product
    root = share.sqrt()
    rows = centred * root
    matrix = root[:, None] * rows
    power = matrix / matrix.abs().max().clamp(
        min=tiny
    )  # where it is rounding alone it may have any trace, and no symmetry
    for _ in range(SQUARINGS):
        power = power @ power.T
        power = power / power.diagonal().sum().clamp(min=tiny)
    spread = (power * matrix).sum()
    along = ((rows @ power) * rows).sum(dim=1) / spread.clamp(min=tiny)
    return spread, along.clamp(min=0)
