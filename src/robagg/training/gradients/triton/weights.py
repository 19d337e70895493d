"""Triton kernels for convolutions' weight gradients by client, of channels-last images.

Nothing is unfolded: with channels last, what one row of the kernel sees at one place lies in one piece of memory, and
that piece is in the cache for its next reader. Sums are parted into fixed ranges and added in a fixed order, so that a
run can be repeated to the bit.
"""

from __future__ import annotations

import torch
from torch import Tensor

from robagg.training.gradients.dense.passes import Geometry, Sink
from robagg.training.gradients.triton.jit import jit

try:
    import triton
    import triton.language as tl
except ImportError:  # no accelerator here: nobody calls the kernels
    triton = tl = None

PROGRAMS = 1056  # eight for each multiprocessor of a large device
ROWS = (32, 3)
"""Places of a tile, and stages of the loop over them, where columns come by rows of the kernel: measured."""


def _by_rows(  # type: ignore[no-untyped-def]
    x, g, part, b, places, per, SPLITS: tl.constexpr, TILES: tl.constexpr,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, HO: tl.constexpr, WO: tl.constexpr, CO: tl.constexpr,
    KH: tl.constexpr, KW: tl.constexpr, BIAS: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr, PH: tl.constexpr,
    PW: tl.constexpr, DH: tl.constexpr, DW: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_O: tl.constexpr, BLOCK_J: tl.constexpr,
):  # fmt: skip
    """One client's sums for one row of the kernel over one range of its places, column j = kw * C + c.

    Column KW * C is of ones, which makes the bias' gradient.
    """
    client = tl.program_id(1) // SPLITS
    split = tl.program_id(1) % SPLITS
    kh = tl.program_id(0) // TILES
    j = (tl.program_id(0) % TILES) * BLOCK_J + tl.arange(0, BLOCK_J)
    o = tl.program_id(2) * BLOCK_O + tl.arange(0, BLOCK_O)
    kw = j // C * DW
    near = j if DW == 1 else kw * C + j % C
    end = tl.minimum((split + 1) * per, places)
    total = tl.zeros((BLOCK_J, BLOCK_O), dtype=tl.float32)
    for first in range(split * per, end, BLOCK_M):
        m = first + tl.arange(0, BLOCK_M)
        live = m < end
        row = m // WO
        y = row % HO * SH - PH + kh * DH
        z = m % WO * SW - PW
        inside = (live & (y >= 0) & (y < H))[None, :] & (j < KW * C)[:, None]
        if PW > 0:
            across = z[None, :] + kw[:, None]
            inside = inside & (across >= 0) & (across < W)
        corner = (((client * b + row // HO) * H + y) * W + z) * C
        seen = tl.load(x + corner[None, :] + near[:, None], mask=inside, other=0.0)
        if BIAS:
            seen = tl.where(live[None, :] & (j == KW * C)[:, None], 1.0, seen).to(seen.dtype)
        at = (client * places + m)[:, None] * CO + o[None, :]
        own = tl.load(g + at, mask=live[:, None] & (o < CO)[None, :], other=0.0)
        if PRECISION == "bf16x3":
            # With a = h + l, h the nearest number of 8 bits, a a' = h h' + h l' + l h' up to 2^-15, finer than tf32's
            # 2^-11, and only 16-bit operands may lie in memory the way these do.
            high = ((seen.to(tl.int32, bitcast=True) + 32768) & -65536).to(tl.float32, bitcast=True)
            top = ((own.to(tl.int32, bitcast=True) + 32768) & -65536).to(tl.float32, bitcast=True)
            total = tl.dot((seen - high).to(tl.bfloat16), top.to(tl.bfloat16), total)
            total = tl.dot(high.to(tl.bfloat16), (own - top).to(tl.bfloat16), total)
            total = tl.dot(high.to(tl.bfloat16), top.to(tl.bfloat16), total)
        else:
            total = tl.dot(seen, own, total, input_precision=PRECISION)
    into = part + (tl.program_id(1).to(tl.int64) * CO + o)[None, :] * (KH * KW * C + BIAS)
    tl.store(into + (kh * KW * C + j)[:, None], total, mask=(o < CO)[None, :] & (j < KW * C)[:, None])
    if BIAS:
        last = (j == KW * C) & (kh == 0)
        tl.store(into + (KH * KW * C + j * 0)[:, None], total, mask=(o < CO)[None, :] & last[:, None])


def _gathered(  # type: ignore[no-untyped-def]
    x, g, part, b, places, per, SPLITS: tl.constexpr,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, HO: tl.constexpr, WO: tl.constexpr, CO: tl.constexpr,
    KH: tl.constexpr, KW: tl.constexpr, BIAS: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr, PH: tl.constexpr,
    PW: tl.constexpr, DH: tl.constexpr, DW: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_O: tl.constexpr, BLOCK_J: tl.constexpr,
):  # fmt: skip
    """The same sums for few channels: all rows of the kernel in one tile, each number read by an address of its own."""
    client = tl.program_id(1) // SPLITS
    split = tl.program_id(1) % SPLITS
    o = tl.program_id(2) * BLOCK_O + tl.arange(0, BLOCK_O)
    j = tl.program_id(0) * BLOCK_J + tl.arange(0, BLOCK_J)
    count: tl.constexpr = KH * KW * C
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
        inside = live[:, None] & (j < count)[None, :] & (y >= 0) & (y < H) & (z >= 0) & (z < W)
        seen = tl.load(x + ((sample[:, None] * H + y) * W + z) * C + c[None, :], mask=inside, other=0.0)
        if BIAS:
            seen = tl.where(live[:, None] & (j == count)[None, :], 1.0, seen).to(seen.dtype)
        at = (client * places + m)[None, :] * CO + o[:, None]
        own = tl.load(g + at, mask=live[None, :] & (o < CO)[:, None], other=0.0)
        total = tl.dot(own, seen, total, input_precision=PRECISION)
    into = part + (tl.program_id(1).to(tl.int64) * CO + o)[:, None] * (count + BIAS) + j[None, :]
    tl.store(into, total, mask=(o < CO)[:, None] & (j < count + BIAS)[None, :])


def _settle(  # type: ignore[no-untyped-def]
    part, rows, stride, C: tl.constexpr, CO: tl.constexpr, K: tl.constexpr, BIAS: tl.constexpr, SPLITS: tl.constexpr,
    SECOND: tl.constexpr, TO_BIAS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Add the ranges up and lay one client's sums down as (O, C, h, w), or as (O,) for the bias."""
    client = tl.program_id(1).to(tl.int64)  # a stack may hold more numbers than 32 bits count
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    size: tl.constexpr = CO if TO_BIAS else CO * C * K
    keep = at < size
    wide: tl.constexpr = C * K + BIAS
    o = at if TO_BIAS else at // (C * K)
    own = at * 0 + C * K if TO_BIAS else at % K * C + at // K % C
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for split in range(SPLITS):
        total += tl.load(part + ((client * SPLITS + split) * CO + o) * wide + own, mask=keep, other=0.0)
    into = rows + client * stride + at
    if SECOND:
        total += tl.load(into, mask=keep, other=0.0)
    tl.store(into, total, mask=keep)


def weights_and_biases(
    g: Tensor, x: Tensor, geometry: Geometry, clients: int, to_weight: Sink, to_bias: Sink | None
) -> None:
    """A convolution's gradients of weight and bias by client; g (N, O, Ho, Wo) and x (N, C, H, W) are channels-last."""
    (c, h, w), (o, ho, wo), (kh, kw) = x.shape[1:], g.shape[1:], geometry.kernel
    b, bias = len(x) // clients, int(to_bias is not None)
    places = b * ho * wo
    by_rows = c >= 64 or (c >= 32 and o >= 64)  # measured
    columns = kw * c + bias if by_rows else kh * kw * c + bias
    block_o, block_j = (min(64, max(16, triton.next_power_of_2(k))) for k in (o, columns))
    block_m, stages = ROWS if by_rows else (64, 3)
    tiles = triton.cdiv(columns, block_j)
    grid = kh * tiles if by_rows else tiles, triton.cdiv(o, block_o)
    splits = max(1, min(triton.cdiv(PROGRAMS, clients * grid[0] * grid[1]), places // 256))
    per = triton.cdiv(triton.cdiv(places, splits), block_m) * block_m
    part = torch.empty(clients, splits, o, kh * kw * c + bias, device=x.device, dtype=torch.float32)
    coarse = x.dtype == torch.float32 and torch.backends.cudnn.allow_tf32
    shapes = (h, w, c, ho, wo, o, kh, kw, bias, *geometry.stride, *geometry.padding, *geometry.dilation)
    whole = (grid[0], clients * splits, grid[1])
    if by_rows:
        # On a CPU Triton interprets, and its interpreter does not multiply bfloat16.
        precision = "bf16x3" if coarse and x.is_cuda else "ieee"
        jit(_by_rows)[whole](
            x, g, part, b, places, per, splits, tiles, *shapes, precision, block_m, block_o, block_j, num_stages=stages
        )  # fmt: skip
    else:
        precision = "tf32" if coarse else "ieee"
        jit(_gathered)[whole](
            x, g, part, b, places, per, splits, *shapes, precision, block_m, block_o, block_j, num_stages=stages
        )
    for sink, size in ((to_weight, o * c * kh * kw), (to_bias, o)):
        if sink is not None:
            rows = sink.rows.view(clients, -1)
            jit(_settle)[(triton.cdiv(size, 256), clients)](
                part, rows, rows.stride(0), c, o, kh * kw, bias, splits, sink.written, sink is to_bias, 256, num_warps=4
            )  # fmt: skip
            sink.written = True
