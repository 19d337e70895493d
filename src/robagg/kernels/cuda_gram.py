"""The n x n work of rules on a CUDA device, each in one kernel: a hundred torch calls cost more than the passes.

The same arithmetic, in float64, as `IterativeRule.weights` with the rules' `pull`, `Sketch` and `reference.examine`.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from robagg.kernels.devices import on
from robagg.kernels.types import Examined, Walked

if TYPE_CHECKING:
    import triton.language as tl
else:
    tl = None  # set when a kernel is built, so that this module can be imported where Triton is not installed

FORMULAS = ("tq", "huber", "cc", "rfa", "mca")
"""How strongly a row pulls at its distance, by the names that rules state as `kernel`; cpu_walk.h keeps the order."""
UNBOUNDED = ("rfa", "mca")
"""Those that have no tau."""


def walk(
    formula: str,
    gram: Tensor,
    spread: Tensor,
    n: int,
    f: int,
    iterations: int,
    parameter: float | None,
    rounding: float,
    blur: Tensor | None,
    anchor: int | None,
) -> Walked:
    """All steps of a loop.

    Args:
        formula: one of FORMULAS.
        gram: (n+a, n+a) float64; spread: () float64.
        parameter: the tau of cc, the smoothing of rfa, the sigma of mca (None: the median distance); else None.
        rounding: `Sketch.rounding`; blur: `Sketch.blur` ().
        anchor: the anchor the loop starts from; None: the centre.
    """
    size, device = len(gram), gram.device
    out = torch.empty(size + n + 1, dtype=torch.float64, device=device)
    outside = torch.empty(n, dtype=torch.uint8, device=device)
    padded = max(16, 1 << (size - 1).bit_length())
    bits = bits_of(1.0 if parameter is None else parameter)
    launch(
        _walk, 1, gram.contiguous(), spread, spread if blur is None else blur, out, outside, size, n, f, iterations,
        -1 if anchor is None else anchor, bits, rounding,
        KIND=FORMULAS.index(formula), ADAPT=parameter is None, BLUR=blur is not None, P=padded,
        num_warps=1 if padded <= 32 else 4,
    )  # fmt: skip
    coefficients, reach, tau = out[:size], out[size : size + n], out[size + n]
    if formula in UNBOUNDED:
        return Walked(coefficients, None, None, reach)
    return Walked(coefficients, tau, outside.view(torch.bool), reach)


def neighbours(gram: Tensor, n: int, count: int) -> tuple[Tensor, Tensor]:
    """For each row its `count` nearest, itself first: squared distances and indices (n, count). Ties: lower index."""
    values = torch.empty(n, count, dtype=torch.float64, device=gram.device)
    indices = torch.empty(n, count, dtype=torch.int64, device=gram.device)
    padded = max(16, 1 << (n - 1).bit_length())
    launch(
        _nearest, n, gram.contiguous(), values, indices, len(gram), n, count,
        MEANS=False, P=padded, num_warps=1 if padded <= 32 else 4,
    )  # fmt: skip
    return values, indices


def nearest_means(gram: Tensor, n: int, count: int) -> Tensor:
    """(n, n+a): 1/count at each row's `count` nearest, itself first, and 0 elsewhere. Ties: lower index."""
    size = len(gram)
    matrix = torch.empty(n, size, dtype=torch.float64, device=gram.device)
    padded = max(16, 1 << (size - 1).bit_length())
    launch(
        _nearest, n, gram.contiguous(), matrix, matrix, size, n, count,
        MEANS=True, P=padded, num_warps=1 if padded <= 32 else 4,
    )  # fmt: skip
    return matrix


def examine(
    gram: Tensor,
    spread: Tensor,
    *,
    n: int,
    few: int,
    tiny: float,
    square: Tensor | None = None,
    grain: float = 0.0,
    alarm: Tensor | None = None,
) -> Examined:
    """Alarm, spread and blur; see `reference.examine`. An `alarm` that is given is set in its place."""
    size, device = len(gram), gram.device
    first = alarm is None
    alarm = torch.empty((), dtype=torch.bool, device=device) if alarm is None else alarm
    out = spread if square is None else torch.empty(2, dtype=torch.float64, device=device)
    padded = max(16, 1 << (size - 1).bit_length())
    launch(
        _examine, 1, gram.contiguous(), spread, spread if square is None else square, alarm.view(torch.uint8), out,
        size, n, few, bits_of(tiny), bits_of(grain), FIRST=first, MIXED=square is not None, P=padded, num_warps=1,
    )  # fmt: skip
    return Examined(alarm, spread, 0.0) if square is None else Examined(alarm, out[0], out[1])


def bits_of(number: float) -> int:
    """The 64 bits of a float64: as a float it would be rounded to float32 on its way to a kernel."""
    bits: int = struct.unpack("<q", struct.pack("<d", number))[0]
    return bits


def launch(kernel: Any, programs: int, gram: Tensor, *arguments: Any, **options: Any) -> None:
    """Run a kernel on the device of its first argument."""
    with on(gram.device):
        _build(kernel)[(programs,)](gram, *arguments, **options)


@cache
def _build(kernel: Any) -> Any:
    import triton
    import triton.language

    kernel.__globals__["tl"] = triton.language
    code = kernel.__code__
    # One kernel whatever the numbers are.
    plain = [name for name in code.co_varnames[: code.co_argcount] if name not in kernel.__annotations__]
    return triton.jit(kernel, do_not_specialize=plain)


def _walk(  # type: ignore[no-untyped-def]
    gram, spread, blur, out, outside, size, n, f, iterations, anchor, bits, rounding,
    KIND: tl.constexpr, ADAPT: tl.constexpr, BLUR: tl.constexpr, P: tl.constexpr,
):  # fmt: skip
    at = tl.arange(0, P)
    row = at < n
    inside = (at[:, None] < size) & (at[None, :] < size)
    g = tl.load(gram + at[:, None] * size + at[None, :], mask=inside, other=0.0)
    square = tl.load(gram + at * (size + 1), mask=at < size, other=0.0)
    v = tl.load(spread)
    length = tl.sqrt(tl.maximum(square, 0.0))
    count = tl.full((), n, tl.float64)
    share = 1.0 / count
    ratio = (n - f).to(tl.float64) / tl.maximum(f, 1).to(tl.float64)
    eps = tl.full((), rounding, tl.float64)
    parameter = tl.cast(tl.full((), bits, tl.int64), tl.float64, bitcast=True)
    c = tl.where((anchor >= 0) & (at == n + anchor), 1.0, 0.0).to(tl.float64)
    squared = tl.zeros((P,), tl.float64)
    far = tl.zeros((P,), tl.int32)
    tau2 = tl.zeros((), tl.float64)
    for _ in range(iterations):
        product = tl.sum(g * c[:, None], axis=0)  # G is symmetric, and down the columns no threads need to talk
        norm = tl.sum(c * product, axis=0)
        squared = tl.maximum(square - 2.0 * product + norm, 0.0)
        reach = length + tl.sum(tl.abs(c) * length, axis=0)
        slack = eps * reach * reach
        if BLUR:
            slack += tl.load(blur)
        if KIND == 2:
            tau2 = parameter * parameter
        if KIND < 2:
            tau2 = tl.where(f > 0, ratio * (tl.maximum(norm, 0.0) + v), float("inf"))
        if KIND == 0:
            far = (squared > tau2 + slack).to(tl.int32)
            pull = (1 - far).to(tl.float64) * share
        elif KIND < 3:
            far = (squared > tau2 + slack).to(tl.int32)
            # Dividing only where a row is outside keeps 0/0 and inf/inf out.
            safe = tl.where(far > 0, squared, 1.0)
            pull = tl.where(far > 0, tl.sqrt(tl.where(far > 0, tau2, 1.0) / safe), 1.0) / count
        elif KIND == 3:
            w = tl.where(row, 1.0 / tl.maximum(tl.sqrt(squared), parameter), 0.0)
            pull = w / tl.sum(w, axis=0)
        else:
            width = parameter * parameter
            if ADAPT:
                distance = tl.sqrt(squared)
                theirs = squared[:, None]
                before = (theirs < squared[None, :]) | ((theirs == squared[None, :]) & (at[:, None] < at[None, :]))
                rank = tl.sum((before & (at[:, None] < n)).to(tl.int32), axis=0)
                low = tl.sum(tl.where(row & (rank == (n - 1) // 2), distance, 0.0), axis=0)
                high = tl.sum(tl.where(row & (rank == n // 2), distance, 0.0), axis=0)
                middle = (low + high) / 2.0
                width = middle * middle
            least = tl.min(tl.where(row, squared, float("inf")), axis=0)
            exponent = (least - squared) / (2.0 * width)
            k = tl.where(row, tl.exp(tl.where(exponent == exponent, exponent, 0.0)), 0.0)
            # Width 0: the middle row is where v is already, so v stays.
            pull = tl.where(width > 0.0, k / tl.sum(k, axis=0), 0.0)
        pull = tl.where(row, pull, 0.0)
        c = c * (1.0 - tl.sum(pull, axis=0)) + pull
    tl.store(out + at, c, mask=at < size)
    tl.store(out + size + at, tl.sqrt(squared), mask=row)
    tl.store(out + size + n, tl.sqrt(tau2))
    tl.store(outside + at, far.to(tl.uint8), mask=row)


def _examine(  # type: ignore[no-untyped-def]
    gram, spread, square, alarm, out, size, n, few, tiny, grain,
    FIRST: tl.constexpr, MIXED: tl.constexpr, P: tl.constexpr,
):  # fmt: skip
    at = tl.arange(0, P)
    length = tl.load(gram + at * (size + 1), mask=at < size, other=1.0)
    sound = tl.sum((length < float("inf")).to(tl.int32), axis=0)  # NaN is not below
    least = tl.cast(tl.full((), tiny, tl.int64), tl.float64, bitcast=True)
    small = tl.sum(((length < least) & (at < n)).to(tl.int32), axis=0)
    met = (sound < P) | (small > few)
    if FIRST:
        tl.store(alarm, met.to(tl.uint8))
    else:
        tl.store(alarm, met.to(tl.uint8), mask=met)
    if MIXED:
        v = tl.load(spread)
        blur = tl.load(square) * tl.cast(tl.full((), grain, tl.int64), tl.float64, bitcast=True)
        tl.store(out, tl.where(v > blur, v, v * 0.0))
        tl.store(out + 1, blur)


def _nearest(  # type: ignore[no-untyped-def]
    gram, values, indices, size, n, count, MEANS: tl.constexpr, P: tl.constexpr
):
    i = tl.program_id(0)
    at = tl.arange(0, P)
    own = tl.load(gram + i * (size + 1))
    square = tl.load(gram + at * (size + 1), mask=at < n, other=0.0)
    distance = tl.maximum(own + square - 2.0 * tl.load(gram + i * size + at, mask=at < n, other=0.0), 0.0)
    distance = tl.where(at == i, -1.0, distance)
    a = distance[:, None]
    b = distance[None, :]
    before = (b < a) | ((b == a) & (at[None, :] < at[:, None]))
    rank = tl.sum((before & (at[None, :] < n)).to(tl.int32), axis=1)
    near = (at < n) & (rank < count)
    if MEANS:
        tl.store(values + i * size + at, tl.where(near, 1.0 / tl.full((), count, tl.float64), 0.0), mask=at < size)
        return
    tl.store(values + i * count + rank, tl.maximum(distance, 0.0), mask=near)
    tl.store(indices + i * count + rank, at.to(tl.int64), mask=near)
