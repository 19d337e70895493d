"""Which Flower this works with, said before anything else can fail in a less clear way."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version

LOWEST = (1, 41)
"""The lowest flwr that all tests have run on, in both engines; the highest was 1.42. Newer ones are let in."""

HOW = "pip install 'robagg[flower]'"


def check_flower() -> None:
    """Raise ImportError where flwr is missing or older than what is tested."""
    try:
        found = version("flwr")
    except PackageNotFoundError:
        raise ImportError(f"robagg.flower needs Flower, which is not installed: {HOW}") from None
    if read_version(found) < LOWEST:
        wanted = ".".join(map(str, LOWEST))
        raise ImportError(f"robagg.flower needs flwr {wanted} or newer, got {found}: {HOW}")


def read_version(text: str) -> tuple[int, ...]:
    """The leading numbers of a version.

    >>> read_version("1.41.0rc1")
    (1, 41, 0)
    """
    match = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(part) for part in match.group().split(".")) if match else (0,)
