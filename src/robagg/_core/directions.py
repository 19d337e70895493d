"""The direction of most variance among many rows, by steps that multiply their matrix with few vectors."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

WIDTH = 16
"""Vectors that are multiplied at a time."""
FRESH = 4
"""Those of them that begin again, at the rows with most weight, where directions of the step before are taken up."""
COLD, WARM = 4, 1
"""Steps from nothing, and from the directions of the step before."""
POWER = 2.0**20
"""Directions whose variance agrees with the largest up to a part of one in so many count as one."""
FAR = 2.0**40
"""Where the longest row's square is this many times the middle one's, float32 would lose the others."""


class Directions:
    """The same as `examine`, called with the shares of one step of a filter after the other.

    Block power steps: what they leave of other directions than the first is stated in docs/scale.md.

    Args:
        gram: (n, n) inner products of the rows about any centre.
        unit: () what they are divided by.
    """

    def __init__(self, gram: Tensor, unit: Tensor) -> None:
        squares = gram.diagonal()
        near = bool(squares.max() <= FAR * squares.median())
        # From numpy, which asks for large pages: getting small ones takes as long as the copy.
        self.gram = torch.from_numpy(np.empty(gram.shape, np.float32 if near else np.float64))
        torch.div(gram, unit, out=self.gram) if not near else self.gram.copy_(gram).div_(unit)
        self.squares = squares / unit
        self.basis: Tensor | None = None

    def __call__(self, share: Tensor) -> tuple[Tensor, Tensor]:
        """The largest variance () of rows with these shares (n,) in any direction, and their squares (n,) along it."""
        dtype, n = self.gram.dtype, len(share)
        weight, root = share.to(dtype)[:, None], share.sqrt().to(dtype)[:, None]
        width = min(WIDTH, n)
        heavy = (share * self.squares).topk(width).indices
        block = torch.zeros(n, width, dtype=dtype, device=share.device)
        block[heavy, torch.arange(width, device=share.device)] = 1
        steps = COLD
        if self.basis is not None:
            block, steps = torch.cat([self.basis[:, : width - FRESH], block[:, :FRESH]], dim=1), WARM
        for _ in range(steps):
            axes = torch.linalg.qr(block).Q
            inner = root * axes
            inner -= weight * inner.sum(dim=0)
            rows = (inner.T @ self.gram).T  # the same, as the matrix is symmetric, and faster with few columns
            rows -= weight.T @ rows
            block = root * rows
        variances, turn = torch.linalg.eigh((axes.T @ block).double())
        variances, turn = variances.flip(0).clamp(min=0), turn.flip(1).to(dtype)
        self.basis = block @ turn
        spread = variances[0].clamp(min=torch.finfo(torch.float64).tiny)
        part = (variances / spread) ** POWER
        along = ((rows @ turn).double().square() @ part) / (part.sum() * spread)
        return spread, along


def sum_least(gram: Tensor, n: int, count: int) -> Tensor:
    """The sum () of the `count` least squared distances between n rows, of which no (n, n) matrix is made."""
    products = gram.numpy()
    squares = products.diagonal()[:n].copy()
    gaps = np.empty(n * (n - 1) // 2)
    for k in range(1, n):
        row = gaps[k * (k - 1) // 2 :][:k]
        np.multiply(products[k, :k], -2, out=row)
        row += squares[:k]
        row += squares[k]
    np.maximum(gaps, 0, out=gaps)
    if 0 < count < len(gaps):
        gaps.partition(count - 1)  # ten times as fast as sorting
    return gram.new_tensor(gaps[:count].sum())
