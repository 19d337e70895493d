"""What passes over many rows are made of, in plain torch: see reference.py for the words."""

from __future__ import annotations

import torch
from torch import Tensor

from robagg.kernels.reference import mad, middle, mixed, tile, tiles
from robagg.kernels.types import Rows
from robagg.kernels.votes import middle_vote


def find_spread(
    rows: Rows, median: Tensor, *, mix: Tensor | None = None, votes: Tensor | None = None
) -> tuple[Tensor, Tensor | None]:
    """V () of the rows, whose median (d,) is written to its place; of mixed rows also its squared length."""
    spread = torch.zeros((), dtype=torch.float64, device=median.device)
    square = None if mix is None else spread.clone()
    for columns in tiles(len(median), median.device, len(rows)):
        x = tile(rows, columns, median.dtype)
        x = x if mix is None else mixed(mix, x)
        s = x.sort(dim=0).values if votes is None else x
        centre = median[columns] = middle(s) if votes is None else middle_vote(x, votes)
        away = mad(s, centre) if votes is None else middle_vote((x - centre).abs(), votes)
        spread += away.double().square().sum()
        if square is not None:
            square += centre.double().square().sum()
    return spread, square


def project(rows: Rows, signs: Tensor, shifts: Tensor, out: Tensor) -> None:
    """Add to each row of `out` (n, k) its row's numbers times their columns' signs (d,).

    The numbers of a block of k columns go to k places, turned by as many as the block's shift says.
    """
    k, d = out.shape[1], len(signs)
    for j, shift in zip(range(0, d, k), shifts.tolist(), strict=True):
        part = tile(rows, slice(j, min(j + k, d)), out.dtype) * signs[j : j + k]
        here = min(k - shift, part.shape[1])
        out[:, shift : shift + here] += part[:, :here]
        out[:, : part.shape[1] - here] += part[:, here:]


def multiply(
    left: Tensor, right: Tensor | None = None, *, centre: Tensor | None = None, compute: torch.dtype
) -> Tensor:
    """The inner products in float64 of rows with others (m, n), or with each other, about a centre (d,)."""
    compute = compute if left.device.type == "cpu" else torch.float64  # an accelerator may round float32 to TF32
    a = left.to(compute) if centre is None else (left - centre).to(compute)
    return (a @ (a if right is None else right.to(compute)).T).double()
