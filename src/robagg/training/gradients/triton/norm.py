"""Triton kernels for BatchNorm of channels-last images by client.

Sums are parted into fixed ranges and added in a fixed order, so that a run can be repeated to the bit.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from robagg.training.gradients.triton.jit import inline, jit

try:
    import triton
    import triton.language as tl
except ImportError:  # no accelerator here: nobody calls the kernels
    triton = tl = None


@inline
def _add_up(part, client, c, C: tl.constexpr, SPLITS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Both sums of a client's channels c over all ranges."""
    at = part + (client * SPLITS + tl.arange(0, SPLITS))[:, None] * 2 * C + c[None, :]
    ok = (c < C)[None, :]
    return tl.sum(tl.load(at, mask=ok, other=0.0), 0), tl.sum(tl.load(at + C, mask=ok, other=0.0), 0)


def _moments(  # type: ignore[no-untyped-def]
    x, part, m, per, C: tl.constexpr, SPLITS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Sums of x - x0 and its square over one range; about x0, the client's first value, large means do not cancel."""
    client = tl.program_id(0)
    split = tl.program_id(1)
    c = tl.program_id(2) * BLOCK_C + tl.arange(0, BLOCK_C)
    base = x + client * m * C + c[None, :]
    zero = tl.load(x + client * m * C + c, mask=c < C, other=0.0).to(tl.float32)
    total = tl.zeros((BLOCK_M, BLOCK_C), dtype=tl.float32)
    square = tl.zeros((BLOCK_M, BLOCK_C), dtype=tl.float32)
    end = tl.minimum((split + 1) * per, m)
    for first in range(split * per, end, BLOCK_M):
        r = first + tl.arange(0, BLOCK_M)
        live = (r < end)[:, None] & (c < C)[None, :]
        value = tl.where(live, tl.load(base + r[:, None] * C, mask=live, other=0.0).to(tl.float32) - zero[None, :], 0.0)
        total += value
        square += value * value
    at = part + (client * SPLITS + split) * 2 * C + c
    tl.store(at, tl.sum(total, 0), mask=c < C)
    tl.store(at + C, tl.sum(square, 0), mask=c < C)


def _normalise(  # type: ignore[no-untyped-def]
    x, part, weight, bias, out, mean, inverse, statistics, m, eps,
    C: tl.constexpr, SPLITS: tl.constexpr, AFFINE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    client = tl.program_id(0)
    c = tl.program_id(2) * BLOCK_C + tl.arange(0, BLOCK_C)
    ok = c < C
    moved, square = _add_up(part, client, c, C, SPLITS)
    moved /= m
    square /= m
    center = tl.load(x + client * m * C + c, mask=ok, other=0.0).to(tl.float32) + moved
    variance = tl.maximum(square - moved * moved, 0.0)
    rate = 1.0 / tl.sqrt(variance + eps)
    if tl.program_id(1) == 0:
        tl.store(mean + client * C + c, center, mask=ok)
        tl.store(inverse + client * C + c, rate, mask=ok)
        tl.store(statistics + client * 2 * C + c, center, mask=ok)
        tl.store(statistics + client * 2 * C + C + c, variance * (m / (m - 1.0)), mask=ok)
    scale = rate
    shift = tl.zeros((BLOCK_C,), dtype=tl.float32)
    if AFFINE:
        scale = rate * tl.load(weight + c, mask=ok, other=0.0).to(tl.float32)
        shift = tl.load(bias + c, mask=ok, other=0.0).to(tl.float32)
    r = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    live = (r < m)[:, None] & ok[None, :]
    where = client * m * C + r[:, None] * C + c[None, :]
    value = tl.load(x + where, mask=live, other=0.0).to(tl.float32)
    tl.store(out + where, (value - center[None, :]) * scale[None, :] + shift[None, :], mask=live)


def _reduce(  # type: ignore[no-untyped-def]
    g, x, mean, inverse, part, m, per, C: tl.constexpr, SPLITS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Sums of g and of g * (x - mean) * inverse over one range: the gradients of bias and weight."""
    client = tl.program_id(0)
    split = tl.program_id(1)
    c = tl.program_id(2) * BLOCK_C + tl.arange(0, BLOCK_C)
    center = tl.load(mean + client * C + c, mask=c < C, other=0.0)
    rate = tl.load(inverse + client * C + c, mask=c < C, other=0.0)
    by_bias = tl.zeros((BLOCK_M, BLOCK_C), dtype=tl.float32)
    by_weight = tl.zeros((BLOCK_M, BLOCK_C), dtype=tl.float32)
    end = tl.minimum((split + 1) * per, m)
    for first in range(split * per, end, BLOCK_M):
        r = first + tl.arange(0, BLOCK_M)
        live = (r < end)[:, None] & (c < C)[None, :]
        where = client * m * C + r[:, None] * C + c[None, :]
        own = tl.load(g + where, mask=live, other=0.0).to(tl.float32)
        by_bias += own
        by_weight += own * (tl.load(x + where, mask=live, other=0.0).to(tl.float32) - center[None, :])
    at = part + (client * SPLITS + split) * 2 * C + c
    tl.store(at, tl.sum(by_bias, 0), mask=c < C)
    tl.store(at + C, tl.sum(by_weight, 0) * rate, mask=c < C)


def _spread(  # type: ignore[no-untyped-def]
    g, x, part, weight, mean, inverse, into, sums, m,
    C: tl.constexpr, SPLITS: tl.constexpr, AFFINE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    client = tl.program_id(0)
    c = tl.program_id(2) * BLOCK_C + tl.arange(0, BLOCK_C)
    ok = c < C
    by_bias, by_weight = _add_up(part, client, c, C, SPLITS)
    if tl.program_id(1) == 0:
        tl.store(sums + client * 2 * C + c, by_weight, mask=ok)
        tl.store(sums + client * 2 * C + C + c, by_bias, mask=ok)
    center = tl.load(mean + client * C + c, mask=ok, other=0.0)
    rate = tl.load(inverse + client * C + c, mask=ok, other=0.0)
    scale = rate
    if AFFINE:
        scale = rate * tl.load(weight + c, mask=ok, other=0.0).to(tl.float32)
    r = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    live = (r < m)[:, None] & ok[None, :]
    where = client * m * C + r[:, None] * C + c[None, :]
    own = tl.load(g + where, mask=live, other=0.0).to(tl.float32)
    normal = (tl.load(x + where, mask=live, other=0.0).to(tl.float32) - center[None, :]) * rate[None, :]
    value = scale[None, :] * (own - (by_bias / m)[None, :] - normal * (by_weight / m)[None, :])
    tl.store(into + where, value, mask=live)


class Fused:
    """BatchNorm in two kernels each way: sums, then values, with each client's few numbers worked out in between."""

    splits = 32

    def forward(
        self, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, clients: int
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """As `Norm` says."""
        c, m, shape = self._shape(x, clients)
        part = torch.empty(clients, self.splits, 2, c, device=x.device)
        mean, inverse = torch.empty(2, clients, c, device=x.device)
        statistics = torch.empty(clients, 2 * c, device=x.device)
        output = torch.empty_like(x)
        sums, values, per = self._grids(clients, c, m, shape)
        jit(_moments)[sums](x, part, m, per, c, self.splits, *shape)
        affine = weight is not None
        tensors = (x, part, weight if affine else x, bias if affine else x, output, mean, inverse, statistics)
        jit(_normalise)[values](*tensors, m, eps, c, self.splits, affine, *shape)
        return output, mean, inverse, statistics

    def backward(
        self, g: Tensor, x: Tensor, mean: Tensor, inverse: Tensor, weight: Tensor | None, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As `Norm` says."""
        clients = len(mean)
        g = g.contiguous(memory_format=torch.channels_last)
        c, m, shape = self._shape(x, clients)
        part = torch.empty(clients, self.splits, 2, c, device=x.device)
        into, by = torch.empty_like(x), torch.empty(clients, 2, c, device=x.device)
        sums, values, per = self._grids(clients, c, m, shape)
        jit(_reduce)[sums](g, x, mean, inverse, part, m, per, c, self.splits, *shape)
        affine = weight is not None
        tensors = (g, x, part, weight if affine else x, mean, inverse, into, by)
        jit(_spread)[values](*tensors, m, c, self.splits, affine, *shape)
        return into, by[:, 0], by[:, 1]

    def _shape(self, x: Tensor, clients: int) -> tuple[int, int, tuple[int, int]]:
        c = x.shape[1]
        block = min(64, triton.next_power_of_2(c))
        return c, x.numel() // (c * clients), (2048 // block, block)

    def _grids(self, clients: int, c: int, m: int, shape: tuple[int, int]) -> tuple[Any, Any, int]:
        tiles = triton.cdiv(c, shape[1])
        per = triton.cdiv(triton.cdiv(m, self.splits), shape[0]) * shape[0]
        return (clients, self.splits, tiles), (clients, triton.cdiv(m, shape[0]), tiles), per
