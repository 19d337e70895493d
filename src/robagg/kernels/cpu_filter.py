"""The loop of the filters in C (cpu_filter.h): what cuda_filter.py does on a GPU."""

from __future__ import annotations

import ctypes
from typing import Any

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


class _Many(torch.autograd.Function):
    """The same under vmap, where only the loop itself goes through the matrices in turn."""

    @staticmethod
    def forward(gram: Tensor, votes: Tensor, f: float, level: Tensor, steps: int) -> Tensor:
        return weigh_down(gram, votes, f, level, steps)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Nothing is kept: there is no way back through it."""

    @staticmethod
    def vmap(info: Any, dims: tuple[int | None, ...], *given: Any) -> tuple[Tensor, int]:
        gram, votes, f, level, steps = given
        count = info.batch_size
        stacks = [
            x.expand(count, *x.shape) if dim is None else x.movedim(dim, 0)
            for x, dim in ((gram, dims[0]), (votes, dims[1]), (level, dims[3]))
        ]
        left = [weigh_down(one, its, f, least, steps) for one, its, least in zip(*stacks, strict=True)]
        return torch.stack(left), 0


def weigh_down_each(gram: Tensor, votes: Tensor, f: float, level: Tensor, steps: int) -> Tensor:
    """The whole loop for a stack of matrices under vmap."""
    left: Tensor = _Many.apply(gram, votes, f, level, steps)  # type: ignore[no-untyped-call]
    return left
