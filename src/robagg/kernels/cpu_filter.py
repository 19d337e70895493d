"""The loop of the filters in C (cpu_filter.h): what cuda_filter.py does on a GPU."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from robagg.kernels.cpu_library import Filter, load

MOST = 64
"""Rows up to which it is faster than BLAS."""


def available() -> bool:
    """Whether the library is there and has the loop: one that was built before it is as good for the rest."""
    return hasattr(load(), "robagg_filter")


def weigh_down(gram: Tensor, votes: Tensor, f: float, level: Tensor, steps: int) -> Tensor:
    """The whole loop; arguments and result as of `robagg.kernels.weigh_down`."""
    library = load()
    assert library is not None
    n, gram, votes = len(votes), gram.contiguous(), votes.contiguous()
    padded = -(-n // 4) * 4
    room = torch.empty(n + (4 * n + 5) * padded, dtype=torch.float64, device="cpu")  # what is left, then scratch
    at = room.data_ptr()
    job = Filter(
        n=n,
        size=len(gram),
        steps=steps,
        f=f,
        level=float(level),
        gram=gram.data_ptr(),
        votes=votes.data_ptr(),
        left=at,
        scratch=at + 8 * n,
    )
    library.robagg_filter(ctypes.byref(job))
    return room[:n]
