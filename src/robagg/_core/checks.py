"""Checks of the numbers that people give: Python's and NumPy's count, and never True or False."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TypeGuard


def is_whole(value: object) -> TypeGuard[int]:
    """Whether it is a whole number.

    >>> is_whole(3), is_whole(np.int64(3)), is_whole(3.0), is_whole(True)
    (True, True, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a real number, whole ones among them.

    >>> is_number(3), is_number(np.float32(0.5)), is_number("3"), is_number(True)
    (True, True, False, False)
    """
    return isinstance(value, Real) and not isinstance(value, bool)


def read_number(name: str, value: object) -> float:
    """A finite number as float, so that `z=1` and `z=1.0` are one attack with one text.

    >>> read_number("z", 1)
    1.0
    """
    if not is_number(value) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return float(value)


def check_positive(**values: object) -> None:
    """Refuse what is no finite number above 0.

    >>> check_positive(step=0.0)
    Traceback (most recent call last):
    ValueError: step must be a finite number > 0, got 0.0
    """
    for name, value in values.items():
        if not is_number(value) or not 0 < value < math.inf:
            raise ValueError(f"{name} must be a finite number > 0, got {value!r}")


def read_positive(rule: object, name: str) -> None:
    """Check a field of a rule as above and keep it as a Python number: NumPy's float32, when scaled, could overflow."""
    value = getattr(rule, name)
    check_positive(**{f"{type(rule).__name__}: {name}": value})
    object.__setattr__(rule, name, int(value) if is_whole(value) else float(value))


def read_whole(thing: object, name: str, least: int) -> None:
    """Check a field that must be a whole number, at least `least`, and keep it as Python's own."""
    value = getattr(thing, name)
    if not is_whole(value) or value < least:
        raise ValueError(f"{type(thing).__name__}: {name} must be a whole number >= {least}, got {value!r}")
    object.__setattr__(thing, name, int(value))
