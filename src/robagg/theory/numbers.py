"""What the formulas ask of their numbers, as sentences."""

from __future__ import annotations

import math

from robagg._core.checks import is_number, is_whole


def check_counts(n: int, f: int) -> None:
    """f liars among n rows, which must be fewer than half."""
    for name, value in (("n", n), ("f", f)):
        if not is_whole(value):
            raise TypeError(f"{name} is wanted as a whole number of rows, got {value!r}")
    if f < 0 or n < 2 * f + 1:
        raise ValueError(f"the theory needs f >= 0 and n >= 2f+1, got n={n}, f={f}")


def check_delta(delta: float) -> float:
    """The share of liars, which must be below one half."""
    _check_real("delta", delta)
    if not 0 <= delta < 0.5:
        raise ValueError(f"delta is the share of liars, 0 <= delta < 0.5, got {delta}")
    return float(delta)


def check_at_least_zero(**values: float) -> None:
    """Finite numbers that may be 0."""
    for name, value in values.items():
        _check_real(name, value)
        if not 0 <= value < math.inf:
            raise ValueError(f"{name} is wanted finite and >= 0, got {value}")


def check_share(**values: float) -> None:
    """Numbers from 0 to 1."""
    for name, value in values.items():
        _check_real(name, value)
        if not 0 <= value <= 1:
            raise ValueError(f"{name} is wanted from 0 to 1, got {value}")


def _check_real(name: str, value: float) -> None:
    if not is_number(value):
        raise TypeError(f"{name} is wanted as a number, got {value!r}")
