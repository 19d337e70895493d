"""The passes over the stack: `sketch`, `trim` and `combine`, each on the fastest path for its device and dtype.

`reference` (plain torch) defines what they compute and runs everywhere; `cpu` is the compiled library, built with the
package. `active()` tells which path runs.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from types import ModuleType

import torch
from torch import Tensor

from robagg.kernels import cpu, reference
from robagg.kernels.reference import Rows

_told = False


def sketch(
    rows: Rows, *, mix: Tensor | None = None, anchors: Sequence[Tensor | None] = (), compute: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """Median, spread and Gram matrix in one pass; see `reference.sketch`."""
    result: tuple[Tensor, Tensor, Tensor] = choose(rows[0]).sketch(rows, mix=mix, anchors=anchors, compute=compute)
    return result


def trim(rows: Rows, lo: int, hi: int, *, mix: Tensor | None = None, compute: torch.dtype) -> tuple[Tensor, Tensor]:
    """Per coordinate the mean of the sorted values lo..hi-1; see `reference.trim`."""
    result: tuple[Tensor, Tensor] = choose(rows[0]).trim(rows, lo, hi, mix=mix, compute=compute)
    return result


def combine(vectors: Sequence[Tensor], coefficients: Tensor, *, compute: torch.dtype) -> tuple[Tensor, Tensor]:
    """The weighted sum of vectors; see `reference.combine`."""
    result: tuple[Tensor, Tensor] = choose(vectors[0]).combine(vectors, coefficients, compute=compute)
    return result


def choose(row: Tensor) -> ModuleType:
    """The module whose passes run for rows like this one."""
    global _told
    if row.device.type == "cpu":
        if cpu.available():
            return cpu
        if not _told:
            _told = True
            warnings.warn(
                "robagg runs without its compiled library (no C compiler when it was installed?): "
                "results are the same, aggregation is slower",
                RuntimeWarning,
                stacklevel=2,
            )
    return reference


def active(device: str | torch.device = "cpu") -> str:
    """Which path runs on a device: "c (avx512)", "torch".

    >>> active("cpu") in ("c (avx512)", "c (avx2)", "c (plain)", "torch")
    True
    """
    if torch.device(device).type == "cpu" and cpu.available():
        return f"c ({cpu.isa()})"
    return "torch"
