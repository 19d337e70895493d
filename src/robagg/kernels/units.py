"""Columns in units of their own spread."""

from __future__ import annotations

from torch import Tensor


def per_unit(mad: Tensor, floor: Tensor) -> Tensor:
    """What columns (d,) are multiplied by: 1 / sqrt(MAD^2 + floor), or 0 where that is infinite."""
    return (mad.double().square() + floor).rsqrt().nan_to_num(posinf=0.0).to(mad.dtype)
