"""Triton kernels for max-pooling of channels-last images in windows that do not overlap.

torch keeps eight bytes for each maximum, where it was, and reads its windows piecemeal; here it is one byte.
"""

from __future__ import annotations

import torch
from torch import Tensor

from robagg.training.gradients.triton.jit import inline, jit

try:
    import triton
    import triton.language as tl
except ImportError:  # no accelerator here: nobody calls the kernels
    triton = tl = None

BLOCK = 1024


@inline
def _corner(  # type: ignore[no-untyped-def]
    at, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, HO: tl.constexpr, WO: tl.constexpr, KH: tl.constexpr,
    KW: tl.constexpr,
):  # fmt: skip
    """Where the windows begin whose maxima are at `at`."""
    place = at // C
    row = place // WO
    return ((row // HO * H + row % HO * KH) * W + place % WO * KW) * C + at % C


def _pool(  # type: ignore[no-untyped-def]
    x, out, where, size, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, HO: tl.constexpr, WO: tl.constexpr,
    KH: tl.constexpr, KW: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = at < size
    corner = _corner(at, H, W, C, HO, WO, KH, KW)
    best = tl.load(x + corner, mask=keep, other=0.0)
    which = tl.zeros((BLOCK,), dtype=tl.int32)
    for k in tl.static_range(1, KH * KW):
        value = tl.load(x + corner + (k // KW * W + k % KW) * C, mask=keep, other=0.0)
        better = (value > best) | (value != value)  # NaN comes out, as it does in torch
        best = tl.where(better, value, best)
        which = tl.where(better, k, which)
    tl.store(out + at, best, mask=keep)
    tl.store(where + at, which.to(tl.uint8), mask=keep)


def _unpool(  # type: ignore[no-untyped-def]
    g, where, into, size, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, HO: tl.constexpr, WO: tl.constexpr,
    KH: tl.constexpr, KW: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = at < size
    corner = _corner(at, H, W, C, HO, WO, KH, KW)
    value = tl.load(g + at, mask=keep, other=0.0)
    which = tl.load(where + at, mask=keep, other=0).to(tl.int32)
    for k in tl.static_range(KH * KW):
        tl.store(into + corner + (k // KW * W + k % KW) * C, tl.where(which == k, value, 0.0), mask=keep)


def forward(x: Tensor, kernel: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """The maxima (N, C, Ho, Wo) of x (N, C, H, W), channels-last both, and which of its window each one is."""
    n, c, h, w = x.shape
    shape = (n, c, h // kernel[0], w // kernel[1])
    out = torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=torch.channels_last)
    where = torch.empty_like(out, dtype=torch.uint8)
    jit(_pool)[(triton.cdiv(out.numel(), BLOCK),)](
        x, out, where, out.numel(), h, w, c, *out.shape[2:], *kernel, BLOCK, num_warps=4
    )
    return out, where


def backward(g: Tensor, where: Tensor, shape: torch.Size, kernel: tuple[int, int]) -> Tensor:
    """The gradient with respect to x of this shape."""
    g = g.contiguous(memory_format=torch.channels_last)
    (c, h, w), (ho, wo) = shape[1:], g.shape[2:]
    into = torch.empty(shape, dtype=g.dtype, device=g.device, memory_format=torch.channels_last)
    if (ho * kernel[0], wo * kernel[1]) != (h, w):
        into.zero_()  # no window reaches the edge
    jit(_unpool)[(triton.cdiv(g.numel(), BLOCK),)](
        g, where, into, g.numel(), h, w, c, ho, wo, *kernel, BLOCK, num_warps=4
    )
    return into
