"""What passes over the stack take and find, whichever kernel makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

Rows = Tensor | Sequence[Tensor]
"""An (n, d) tensor, or n vectors (d,)."""


class Sketched(NamedTuple):
    """What `sketch` finds in a leaf."""

    median: Tensor
    """(d,)"""
    spread: Tensor
    """() float64: V, the sum over coordinates of MAD^2."""
    gram: Tensor
    """(m+a, m+a) float64: inner products of rows and anchors about the median."""
    square: Tensor | None
    """() the squared length of the median, for mixed rows only."""


class Examined(NamedTuple):
    """What `examine` says of a sketch."""

    alarm: Tensor
    """() whether it cannot be computed with."""
    spread: Tensor
    """() V, or 0 where it is rounding alone."""
    blur: Tensor | float
    """() what rounding alone may make of the squared distance of two mixed rows that coincide."""


class Walked(NamedTuple):
    """What the n x n loop of a rule comes to."""

    coefficients: Tensor
    """(n+a,)"""
    tau: Tensor | None
    """() the radius in the last step; None for a formula that has none."""
    outside: Tensor | None
    """(n,) rows beyond tau in the last step."""
    reach: Tensor
    """(n,) distances that the last step compared with tau."""
