"""Which version of a framework an adapter works with, said before anything else can fail in a less clear way."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version


def check_requirement(adapter: str, package: str, lowest: tuple[int, ...], name: str) -> None:
    """Raise ImportError where the package is missing or older than what is tested.

    >>> check_requirement("robagg.flower", "no-such-package", (1, 41), "Flower")
    Traceback (most recent call last):
    ImportError: robagg.flower needs Flower, which is not installed: pip install 'robagg[flower]'
    """
    how = f"pip install 'robagg[{adapter.rpartition('.')[2]}]'"
    try:
        found = version(package)
    except PackageNotFoundError:
        raise ImportError(f"{adapter} needs {name}, which is not installed: {how}") from None
    if read_version(found) < lowest:
        wanted = ".".join(map(str, lowest))
        raise ImportError(f"{adapter} needs {package} {wanted} or newer, got {found}: {how}")


def read_version(text: str) -> tuple[int, ...]:
    """The leading numbers of a version.

    >>> read_version("1.41.0rc1")
    (1, 41, 0)
    """
    match = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(part) for part in match.group().split(".")) if match else (0,)
