"""Kernels are compiled when they are first called, and only there does anybody need Triton."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any


def inline(function: Callable[..., Any]) -> Any:
    """A function for kernels to call; without Triton nobody calls it."""
    try:
        import triton
    except ImportError:
        return function
    return triton.jit(function)


@cache
def jit(kernel: Callable[..., None]) -> Any:
    """The kernel, compiled for its shapes when first called."""
    import triton

    return triton.jit(kernel)
