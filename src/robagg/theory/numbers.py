"""Checks of the numbers that the formulas take."""

from __future__ import annotations

import math

from robagg._core.checks import is_number, is_whole


def check_counts(n: int, f: int) -> None:
    """f Byzantine rows among n, which must be fewer than half."""
    for name, value in (("n", n), ("f", f)):
        if not is_whole(value):
            raise TypeError(f"{name} must be a whole number of rows, got {value!r}")
    if f < 0 or n < 2 * f + 1:
        raise ValueError(f"n must be at least 2f+1 and f at least 0, got n={n}, f={f}")


def check_delta(delta: float) -> float:
    """The share of Byzantine rows, which must be below one half."""
    _check_real("delta", delta)
    if not 0 <= delta < 0.5:
        raise ValueError(f"delta must be a share of rows from 0 to below 0.5, got {delta}")
    return float(delta)


def check_at_least_zero(**values: float) -> None:
    """Finite numbers that may be 0."""
    for name, value in values.items():
        _check_real(name, value)
        if not 0 <= value < math.inf:
            raise ValueError(f"{name} must be a finite number >= 0, got {value}")


def check_share(**values: float) -> None:
    """Numbers from 0 to 1."""
    for name, value in values.items():
        _check_real(name, value)
        if not 0 <= value <= 1:
            raise ValueError(f"{name} must be a number from 0 to 1, got {value}")


def _check_real(name: str, value: float) -> None:
    if not is_number(value):
        raise TypeError(f"{name} must be a number, got {value!r}")
