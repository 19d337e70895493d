"""The loop of a rule on the Gram matrix in C (cpu_walk.h): what cuda_gram.py does on a GPU."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from robagg.kernels.cpu_library import Walk, load
from robagg.kernels.cuda_gram import FORMULAS, UNBOUNDED
from robagg.kernels.types import Walked


def walk(
    formula: str,
    gram: Tensor,
    spread: Tensor,
    n: int,
    f: float,
    iterations: int,
    parameter: float | None,
    rounding: float,
    blur: Tensor | None,
    anchor: int | None,
    votes: Tensor | None = None,
) -> Walked:
    """The whole loop of a rule; arguments and results as of `cuda_gram.walk`, and votes as of `Sketch`."""
    library = load()
    assert library is not None
    size, gram = gram.shape[0], gram.contiguous()
    # One block for all that is written: coefficients, distances, tau, scratch.
    room = torch.empty(6 * size + n + 1, dtype=torch.float64, device="cpu")
    outside = torch.empty(n, dtype=torch.bool, device="cpu")
    at = room.data_ptr()
    job = Walk(
        kind=FORMULAS.index(formula),
        size=size,
        n=n,
        f=f,
        iterations=iterations,
        anchor=-1 if anchor is None else anchor,
        parameter=float("nan") if parameter is None else parameter,
        rounding=rounding,
        blur=0.0 if blur is None else float(blur),
        spread=float(spread),
        gram=gram.data_ptr(),
        votes=None if votes is None else votes.data_ptr(),
        c=at,
        reach=at + 8 * size,
        tau=at + 8 * (size + n),
        scratch=at + 8 * (size + n + 1),
        outside=outside.data_ptr(),
    )
    library.robagg_walk(ctypes.byref(job))
    coefficients, reach, tau = room[:size], room[size : size + n], room[size + n]
    if formula in UNBOUNDED:
        return Walked(coefficients, None, None, reach)
    return Walked(coefficients, tau, outside, reach)
