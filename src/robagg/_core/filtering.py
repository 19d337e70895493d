"""The loop of the filters: rows that stick out along the direction of most variance lose weight, step by step."""

from __future__ import annotations

import torch
from torch import Tensor

SQUARINGS = 20
"""A matrix squared so often is the projector on its top eigenvectors, unless eigenvalues agree to five digits."""
OUT = 1e-9
"""A row below this part of a full vote has lost its weight."""
SLACK = 1e-9
"""What is decided by less than this part is decided by rounding: the earlier step and the end are preferred."""


def weigh_down(gram: Tensor, votes: Tensor, f: int) -> Tensor:
    """Weights (n,) of sum 1 under which the rows vary least in the direction where they vary most.

    From the votes (n,) on, 2f times: a row loses the part of its weight that its squared distance from the weighted
    mean, along the direction of the largest weighted variance, is of the largest such distance. Weights whose sum is
    not above n-2f do not count, and of those before them the ones with the least largest variance are the result.

    Args:
        gram: (n, n) inner products of the rows about any centre.
        votes: (n,) weights to start from, of sum n.
        f: how many rows may be Byzantine.
    """
    n = len(gram)
    tiny = torch.finfo(torch.float64).tiny
    gram = gram / gram.diagonal().max().clamp(min=tiny)
    c, best, least, alive = votes, votes, torch.full_like(gram[0, 0], torch.inf), torch.ones_like(gram[0, 0])
    for _ in range(2 * f):
        share = c / c.sum()
        spread, along = examine(gram, share)
        better = (spread < least * (1 - SLACK)) & (alive > 0)
        least, best = torch.where(better, spread, least), torch.where(better, c, best)
        top = torch.where(c > OUT, along, 0.0).max().clamp(min=tiny)
        left = c * (1 - along / top).clamp(min=0)
        left = torch.where(left > OUT, left, 0.0)
        alive = alive * (left.sum() > n - 2 * f + SLACK * n)
        c = torch.where(alive > 0, left, c)
    return best / best.sum()


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
