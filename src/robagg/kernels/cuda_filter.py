"""The loop of the filters on a CUDA device in one kernel: the same arithmetic, in float64, as `_core.filtering`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from robagg.kernels.cuda_gram import bits_of, launch

if TYPE_CHECKING:
    import triton.language as tl
else:
    tl = None  # set when a kernel is built, so that this module can be imported where Triton is not installed


def weigh_down(gram: Tensor, votes: Tensor, f: float, level: Tensor, steps: int) -> Tensor:
    """The whole loop; arguments and result as of `robagg.kernels.weigh_down`."""
    n = len(votes)
    padded = max(16, 1 << (n - 1).bit_length())
    left = torch.empty(n, dtype=torch.float64, device=gram.device)
    room = torch.empty(2 * padded * padded, dtype=torch.float64, device=gram.device)
    launch(
        _filter, 1, gram.contiguous(), votes.contiguous(), level, left, room, len(gram), n, bits_of(2.0 * f), steps,
        P=padded, num_warps=1 if padded <= 16 else 4 if padded <= 32 else 8,
    )  # fmt: skip
    return left


def _filter(  # type: ignore[no-untyped-def]
    gram, votes, level, left, room, size, n, bits, steps, P: tl.constexpr
):
    at = tl.arange(0, P)
    row = at < n
    cell = at[:, None] * P + at[None, :]
    tiny = 2.2250738585072014e-308
    g = tl.load(gram + at[:, None] * size + at[None, :], mask=row[:, None] & row[None, :], other=0.0)
    unit = tl.maximum(tl.max(tl.load(gram + at * (size + 1), mask=row, other=0.0), axis=0), tiny)
    g = g / unit
    floor = tl.load(level) / unit
    c = tl.load(votes + at, mask=row, other=0.0)
    whole = tl.sum(c, axis=0)
    most = tl.cast(tl.full((), bits, tl.int64), tl.float64, bitcast=True)
    best = c
    least = tl.full((), float("inf"), tl.float64)
    step = 0
    while step < steps:
        step += 1
        share = c / tl.sum(c, axis=0)
        root = tl.sqrt(share)
        product = tl.sum(g * share[:, None], axis=0)  # G is symmetric, and down the columns no threads need to talk
        turned = tl.sum(g * share[None, :], axis=1)
        matrix = (g - turned[:, None] - product[None, :] + tl.sum(share * product, axis=0)) * root[:, None]
        matrix = matrix * root[None, :]
        power = matrix / tl.maximum(tl.max(tl.max(tl.abs(matrix), axis=1), axis=0), tiny)
        tl.debug_barrier()
        tl.store(room + P * P + cell, matrix)
        squarings = 0
        while squarings < 20:
            squarings += 1
            tl.debug_barrier()
            tl.store(room + cell, power)
            tl.debug_barrier()
            square = tl.zeros((P, P), tl.float64)
            for k in range(n):
                line = tl.load(room + k * P + at)
                square += line[:, None] * line[None, :]
            trace = tl.sum(tl.sum(tl.where(at[:, None] == at[None, :], square, 0.0), axis=1), axis=0)
            square = square / tl.maximum(trace, tiny)
            change = tl.max(tl.max(tl.abs(square - power), axis=1), axis=0)
            power = square
            squarings = tl.where(change < 1e-14, 20, squarings)  # it is a projector already
        tl.debug_barrier()
        tl.store(room + cell, power)
        tl.debug_barrier()
        spread = tl.sum(tl.sum(power * matrix, axis=1), axis=0)
        found = (spread >= least - least * 1e-9) == 0  # a NaN too
        least = tl.where(found, spread, least)
        best = tl.where(found, c, best)
        through = tl.zeros((P, P), tl.float64)
        for k in range(n):
            through += tl.load(room + P * P + k * P + at)[:, None] * tl.load(room + k * P + at)[None, :]
        along = tl.sum(through * matrix, axis=1) / tl.maximum(share, tiny) / tl.maximum(spread, tiny)
        along = tl.where(c > 1e-9, tl.maximum(along, 0.0), 0.0)
        part = tl.minimum(along / tl.maximum(tl.max(along, axis=0), tiny), 1.0)
        gentle = tl.minimum(floor / tl.maximum(spread, tiny), 0.5)
        now = c * (1.0 - (1.0 - gentle) * part)
        now = tl.where(now > 1e-9, now, 0.0)
        ends = (spread <= floor + floor * 1e-9) | (tl.sum(now, axis=0) <= whole - most + whole * 1e-9)
        c = tl.where(ends, c, now)
        step = tl.where(ends, steps, step)
    tl.store(left + at, best, mask=row)
