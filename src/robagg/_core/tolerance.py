"""The tolerance f: how many rows may be Byzantine, and how many of the rest when some are broken."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

from robagg._core.checks import is_number

F = int | float | None
"""How many rows may be Byzantine: a number, a share of the rows below one half, or None for the most that n allows."""


class QuorumError(RuntimeError):
    """Too few rows are left to aggregate."""


def read_f(f: Any, who: str) -> F:
    """f as Python's own number (NumPy's may overflow): a whole one >= 0, a share in [0, 0.5), or None."""
    if f is None:
        return None
    if not is_number(f):
        raise TypeError(f"{who}: f must be a number of rows, a share of them in [0, 0.5), or None, got {f!r}")
    if isinstance(f, Integral):
        if f < 0:
            raise ValueError(f"{who}: f must be >= 0, got {f}")
        return int(f)
    if not 0 <= float(f) < 0.5:
        raise ValueError(f"{who}: f must be an integer number of rows or a share of them in [0, 0.5), got {f}")
    return float(f)


def resolve_f(f: F, n: int, who: str) -> int:
    """f for n rows, checked against n; a share is rounded up, to the most that n allows.

    >>> [resolve_f(0.2, n, "a rule") for n in (2, 4, 5, 6, 20)]
    [0, 1, 1, 2, 4]
    """
    if f is None:
        return (n - 1) // 2
    if not isinstance(f, Integral):
        return min(math.ceil(f * n - 1e-9), (n - 1) // 2)  # 0.28 * 25 is 7.000000000000001
    f = int(f)
    if n < 2 * f + 1:
        raise ValueError(f"{who}: n must be at least 2f+1, got n={n}, f={f}")
    return f


def tolerance_left(f: int, n: int, broken: int) -> int | None:
    """f for the n - broken rows left, or None where there is no quorum.

    With 2f+1 rows left f stays: a broken client does not disarm the rule. Otherwise, if no more than f are broken, f is
    the most that the rest allows, which is at least f - broken: a broken client cannot stop it either.
    """
    return left_of(f, (n - broken - 1) // 2, broken, n - broken)


def left_of(f: int, most: int, broken: int, left: int) -> int | None:
    """What is left of f where some rows are broken and `most` of those left can be tolerated."""
    if most >= f:
        return f
    return most if broken <= f and left > 0 else None
