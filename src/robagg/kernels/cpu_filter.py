"""The loop of the filters in C (cpu_filter.h): what cuda_filter.py does on a GPU."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from robagg.kernels.cpu_library import Filter, load
from robagg.kernels.types import Filtered

MOST = 64
"""Rows up to which it is faster than BLAS."""


def available() -> bool:
    """Whether the library is there and has the loop: one that was built before it is as good for the rest."""
    return hasattr(load(), "robagg_filter")


def weigh_down(gram: Tensor, votes: Tensor, f: float, steps: int, standout: float) -> Filtered:
    """The whole loop; arguments and results as of `robagg._core.filtering.weigh_down`, but gram may have anchors."""
    library = load()
    assert library is not None
    n, gram, votes = len(votes), gram.contiguous(), votes.contiguous()
    padded = -(-n // 4) * 4
    # One block for all that is written: what is left, the scale, scratch.
    room = torch.empty(n + 1 + 5 * (n + 1) * padded, dtype=torch.float64, device="cpu")
    at = room.data_ptr()
    job = Filter(
        n=n,
        size=len(gram),
        steps=steps,
        f=f,
        standout=standout,
        gram=gram.data_ptr(),
        votes=votes.data_ptr(),
        left=at,
        scale=at + 8 * n,
        scratch=at + 8 * (n + 1),
    )
    library.robagg_filter(ctypes.byref(job))
    return Filtered(room[:n], room[n])
