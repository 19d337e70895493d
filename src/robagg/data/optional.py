"""Imports what is not needed to aggregate or train: the core works with torch and numpy alone."""

from __future__ import annotations

import importlib
from typing import Any


def require(module: str, package: str, purpose: str, extra: str = "lab") -> Any:
    """Import an optional module, or say in a sentence which package is missing and how to install it.

    Args:
        module: what is imported, such as `sklearn.datasets`.
        package: the name under which it is installed, such as `scikit-learn`.
        purpose: what cannot be done without it.

    Example:
        >>> require("math", "math", "rounding").floor(1.5)
        1
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{purpose} needs {package}: pip install 'robagg[{extra}]'") from error
