"""What counts as a number among the parameters that people give: Python's and NumPy's, and never True or False."""

from __future__ import annotations

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
