"""Shares in proportion to what clients claim, none above its limit: what one would have too much goes to others."""

from __future__ import annotations

import torch
from torch import Tensor


def fill(claims: Tensor, alone: Tensor, limits: Tensor) -> Tensor:
    """Shares (n,) in proportion to `claims` (n,) with the sum of `alone`, none above its limit.

    Those that claim nothing share what the others leave in proportion to `alone`.

    >>> fill(torch.tensor([8.0, 1.0, 1.0]), torch.tensor([0.2, 0.4, 0.4]), torch.tensor([0.5, 0.5, 0.5]))
    tensor([0.5000, 0.2500, 0.2500])
    """
    full = torch.zeros_like(claims, dtype=torch.bool)
    while not bool(full.all()):
        free = claims.masked_fill(full, 0.0)
        if not free.any():
            free = alone.masked_fill(full, 0.0)
        free = free / free.max()  # the sum of the largest claims may round to no number
        part = torch.where(full, limits, free / free.sum() * (alone.sum() - limits[full].sum()))
        if not bool((over := part > limits * (1 + 1e-12)).any()):
            return part
        full |= over
    return limits


def cap(claims: Tensor, most: float) -> Tensor:
    """Shares (n,) of 1 in proportion to `claims` (n,), none above `most`, which is at least 1/n.

    >>> cap(torch.tensor([8.0, 1.0, 1.0]), 0.5)
    tensor([0.5000, 0.2500, 0.2500])
    """
    return fill(claims, torch.full_like(claims, 1 / len(claims)), torch.full_like(claims, max(most, 1 / len(claims))))
