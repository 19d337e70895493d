"""Triton kernels for channels-last images of all clients: convolutions' weight gradients, and BatchNorm by client.

Nothing is unfolded: a tile of the unfolded input is read where it lies, and that memory is in the cache for its next
reader. Sums are parted into fixed ranges and added in a fixed order, so that a run can be repeated to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from robagg.train.dense_convolution import Geometry

try:
    import triton
    import triton.language as tl
except ImportError:  # no accelerator here: nobody calls the kernels
    triton = tl = None

if TYPE_CHECKING:
    from robagg.train.dense_layers import Sink

PROGRAMS = 1056  # eight for each multiprocessor of a large device


def _weights(  # type: ignore[no-untyped-def]
    x, g, out, b, places, per, SPLITS: tl.constexpr,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, HO: tl.constexpr, WO: tl.constexpr, CO: tl.constexpr,
    KW: tl.constexpr, J: tl.constexpr, BIAS: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr, PH: tl.constexpr,
    PW: tl.constexpr, DH: tl.constexpr, DW: tl.constexpr, PRECISION: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_O: tl.constexpr, BLOCK_J: tl.constexpr,
):  # fmt: skip
    """One client's (CO, J) sums over one range of its places; column J is of ones, which makes the bias' gradient."""
    client = tl.program_id(1) // SPLITS
    split = tl.program_id(1) % SPLITS
    o = tl.program_id(2) * BLOCK_O + tl.arange(0, BLOCK_O)
    j = tl.program_id(0) * BLOCK_J + tl.arange(0, BLOCK_J)
    c = j % C
    kh = (j // C) // KW
    kw = (j // C) % KW
    end = tl.minimum((split + 1) * per, places)
    total = tl.zeros((BLOCK_O, BLOCK_J), dtype=tl.float32)
    for first in range(split * per, end, BLOCK_M):
        m = first + tl.arange(0, BLOCK_M)
        live = m < end
        row = m // WO
        sample = client * b + row // HO
        y = (row % HO)[:, None] * SH - PH + kh[None, :] * DH
        z = (m % WO)[:, None] * SW - PW + kw[None, :] * DW
        inside = live[:, None] & (j < J)[None, :] & (y >= 0) & (y < H) & (z >= 0) & (z < W)
        seen = tl.load(x + ((sample[:, None] * H + y) * W + z) * C + c[None, :], mask=inside, other=0.0)
        if BIAS:
            seen = tl.where(live[:, None] & (j == J)[None, :], 1.0, seen).to(seen.dtype)
        at = (client * places + m)[None, :] * CO + o[:, None]
        own = tl.load(g + at, mask=live[None, :] & (o < CO)[:, None], other=0.0)
        total = tl.dot(own, seen, total, input_precision=PRECISION)
    into = out + (tl.program_id(1) * CO + o)[:, None] * (J + BIAS) + j[None, :]
    tl.store(into, total, mask=(o < CO)[:, None] & (j < J + BIAS)[None, :])


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
    s = tl.arange(0, SPLITS)
    at = part + (client * SPLITS + s)[:, None] * 2 * C + c[None, :]
    moved = tl.sum(tl.load(at, mask=ok[None, :], other=0.0), 0) / m
    square = tl.sum(tl.load(at + C, mask=ok[None, :], other=0.0), 0) / m
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
    s = tl.arange(0, SPLITS)
    at = part + (client * SPLITS + s)[:, None] * 2 * C + c[None, :]
    by_bias = tl.sum(tl.load(at, mask=ok[None, :], other=0.0), 0)
    by_weight = tl.sum(tl.load(at + C, mask=ok[None, :], other=0.0), 0)
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


@cache
def jit(kernel: Callable[..., None]) -> Any:
    """The kernel, compiled for its shapes when first called."""
    return triton.jit(kernel)


def weights_and_biases(
    g: Tensor, x: Tensor, geometry: Geometry, clients: int, to_weight: Sink, to_bias: Sink | None
) -> None:
    """A convolution's gradients of weight and bias by client; g (N, O, Ho, Wo) and x (N, C, H, W) are channels-last."""
    (c, h, w), (o, ho, wo), (kh, kw) = x.shape[1:], g.shape[1:], geometry.kernel
    b, j, bias = len(x) // clients, kh * kw * c, int(to_bias is not None)
    places = b * ho * wo
    block_o, block_j = (min(64, max(16, triton.next_power_of_2(k))) for k in (o, j + bias))
    tiles = triton.cdiv(j + bias, block_j), triton.cdiv(o, block_o)
    splits = max(1, min(triton.cdiv(PROGRAMS, clients * tiles[0] * tiles[1]), places // 256))
    per = triton.cdiv(triton.cdiv(places, splits), 64) * 64
    sums = torch.empty(clients, splits, o, j + bias, device=x.device, dtype=torch.float32)
    precision = "tf32" if torch.backends.cudnn.allow_tf32 else "ieee"
    jit(_weights)[(tiles[0], clients * splits, tiles[1])](
        x, g, sums, b, places, per, splits, h, w, c, ho, wo, o, kw, j, bias, *geometry.stride, *geometry.padding,
        *geometry.dilation, precision, 64, block_o, block_j,
    )  # fmt: skip
    total = sums.sum(1) if splits > 1 else sums[:, 0]
    to_weight.put(total[..., :j].view(clients, o, kh, kw, c).permute(0, 1, 4, 2, 3))
    if to_bias is not None:
        to_bias.put(total[..., j])


class Fused:
    """BatchNorm in two kernels each way: sums, then values, with each client's few numbers worked out in between."""

    splits = 16

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
