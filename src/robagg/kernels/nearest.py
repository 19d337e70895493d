"""The values of each coordinate that lie nearest to its median, averaged: in plain torch, on every device."""

from __future__ import annotations

import torch
from torch import Tensor

from robagg.kernels.reference import middle, mixed, tile, tiles
from robagg.kernels.types import Rows
from robagg.kernels.votes import middle_vote


def average_nearest(
    rows: Rows,
    count: int,
    *,
    mix: Tensor | None = None,
    votes: Tensor | None = None,
    compute: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor]:
    """Per coordinate the mean (d,) of the `count` values nearest to the median, and how many each row has of them (m,).

    And whether any input is not finite (). With votes (m,) int64, row i counts as votes[i] copies of itself. Of values
    as far from the median the first rows' are taken.
    """
    d, device = rows[0].shape[0], rows[0].device
    m = len(rows) if mix is None else len(mix)
    value = torch.empty(d, dtype=compute, device=device)
    held = torch.zeros(m, dtype=torch.float64, device=device)
    alarm = torch.zeros((), dtype=torch.bool, device=device)
    for columns in tiles(d, device, m):
        x = tile(rows, columns, compute)
        alarm |= ~torch.isfinite(x).all()
        if mix is not None:
            x = mixed(mix, x)
        centre = middle(x.sort(dim=0).values) if votes is None else middle_vote(x, votes)
        order = (x / 2 - centre / 2).abs().sort(dim=0, stable=True).indices  # halves: gaps of the largest overflow
        if votes is None:
            part = (torch.arange(m, device=device) < count).double()[:, None].expand_as(x)
        else:
            ends = votes[order].cumsum(dim=0)
            part = (ends.clamp(max=count) - (ends - votes[order]).clamp(max=count)).double()
        value[columns] = (x.gather(0, order) * (part / count).to(compute)).sum(dim=0)
        held += torch.zeros_like(part).scatter(0, order, part).sum(dim=1)
    return value, held, alarm
