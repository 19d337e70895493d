"""The passes over the stack on a CUDA device, in Triton: the same functions as in reference.py.

No call waits for the device. A kernel is compiled the first time its number of rows and dtype are met (seconds, then
kept on disk by Triton), which a CUDA graph cannot record: run a rule once before capturing it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from robagg.kernels import cuda_source, reference
from robagg.kernels.cuda_gram import FORMULAS, examine, nearest_means, neighbours, walk
from robagg.kernels.devices import on
from robagg.kernels.types import Rows, Sketched

MOST = 64
"""Rows and anchors that fit into registers; beyond that the reference runs."""
MIXED = 256
"""Rows that may be mixed into no more than MOST."""
LOOSE = 128
"""Vectors at addresses of their own that one kernel combines."""
__all__ = [
    "FORMULAS",
    "MOST",
    "available",
    "combine",
    "examine",
    "nearest_means",
    "neighbours",
    "plans",
    "sketch",
    "trim",
    "walk",
]
_NARROW = (torch.float32, torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Plan:
    """How a pass is cut up: columns per tile, warps per program, programs per multiprocessor, registers per thread."""

    block: int
    warps: int
    programs: int
    registers: int | None = None


plans = {
    "sketch": Plan(128, 4, 4, 128),
    "sketch wide": Plan(128, 4, 2),
    "mixed sketch": Plan(128, 4, 3, 168),
    "mixed sketch wide": Plan(128, 4, 2),
    "trim": Plan(256, 4, 8),
    "trim wide": Plan(128, 4, 4),
    "mixed trim": Plan(128, 4, 12, 128),
    "mixed trim wide": Plan(128, 4, 3, 168),
    "combine": Plan(512, 4, 0),
}
"""Measured choices; "wide" is for more than 32 rows."""


@cache
def available() -> bool:
    """Whether these kernels run here: Triton and an NVIDIA device, or Triton's interpreter."""
    return not explain()


def explain() -> str:
    """Why these kernels do not run here, in a sentence; empty where they do."""
    try:
        import triton  # noqa: F401
    except ImportError:
        return "Triton is not installed"
    if os.environ.get("TRITON_INTERPRET") == "1":
        return ""
    if torch.version.cuda is None:
        return "this torch is built without CUDA"
    return "" if torch.cuda.is_available() else "torch finds no NVIDIA GPU"


def sketch(
    rows: Rows, *, mix: Tensor | None = None, anchors: Sequence[Tensor | None] = (), compute: torch.dtype
) -> Sketched:
    """Median, spread and Gram matrix in one pass; see `reference.sketch`."""
    n, m = len(rows), len(rows if mix is None else mix)
    size = m + len(anchors)
    row = rows[0]
    if not _fits(row, n, size, mix, compute):
        return reference.sketch(rows, mix=mix, anchors=anchors, compute=compute)
    d, device = row.shape[0], row.device
    where, loose, _held = _locate(rows)
    points = [_dense(point) for point in anchors if point is not None]
    kinds = "".join("o" if point is None else "v" for point in anchors)
    plan = _plan("sketch", m, mix)
    tiles, programs = _cut(d, plan, device)
    median = torch.empty(d, dtype=compute, device=device)
    mixed = mix is not None
    share = torch.empty(programs, size * size + 1 + mixed, dtype=torch.float64, device=device)
    kernel = cuda_source.build(cuda_source.sketch, m, n, loose, mixed, kinds)
    _launch(kernel, programs, plan, device, *where, *_coefficients(mix), *points, median, share, d, tiles)
    total = share.sum(dim=0)
    gram = total[: size * size].view(size, size)
    return Sketched(median, total[size * size], gram, total[-1] if mixed else None)


def trim(rows: Rows, lo: int, hi: int, *, mix: Tensor | None = None, compute: torch.dtype) -> tuple[Tensor, Tensor]:
    """Per coordinate the mean of the sorted values lo..hi-1; see `reference.trim`.

    Mixed rows are exact to 2^-136, where float32 would keep some more bits of numbers that small.
    """
    n, m = len(rows), len(rows if mix is None else mix)
    row = rows[0]
    if not _fits(row, n, m, mix, compute):
        return reference.trim(rows, lo, hi, mix=mix, compute=compute)
    d, device = row.shape[0], row.device
    where, loose, _held = _locate(rows)
    plan = _plan("trim", m, mix)
    tiles, programs = _cut(d, plan, device)
    value = torch.empty(d, dtype=compute, device=device)
    alarm = torch.zeros((), dtype=torch.uint8, device=device)
    kernel = cuda_source.build(cuda_source.trim, m, n, loose, mix is not None, lo, hi)
    _launch(kernel, programs, plan, device, *where, *_coefficients(mix), value, alarm, d, tiles)
    return value, alarm.view(torch.bool)


def combine(
    rows: Rows,
    coefficients: Tensor,
    *,
    beside: Sequence[Tensor] = (),
    compute: torch.dtype,
    alarm: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The weighted sum of rows; see `reference.combine`. A row with coefficient 0 is not read.

    An `alarm` that is given is set in its place.
    """
    row = rows[0]
    d, device = row.shape[0], row.device
    loose = [_dense(vector) for vector in beside]
    rest = len(coefficients) < len(rows) + len(beside)
    if isinstance(rows, Tensor) and rows.stride(1) == 1 and (beside or not rest):
        first, stride, n = rows, rows.stride(0), len(rows)
    else:
        vectors = [*(_dense(row) for row in rows), *loose]  # also holds the copies in the stack until the launch
        # The one whose coefficient is missing is never one of the stack, wherever it lies.
        stride, n = _spacing(vectors[:-1] if rest else vectors)
        if len(vectors) - n > 4:  # no stack with a few points beside it: all loose, so that few kernels are compiled
            stride, n = 0, 0
        first, loose = vectors[0], vectors[n:]
    if compute != torch.float32 or len(loose) > LOOSE or not 0 < d < 2**31 - 4096:
        return reference.combine(rows, coefficients, beside=beside, compute=compute, alarm=alarm)
    plan = plans["combine"]
    value = torch.empty(d, dtype=compute, device=device)
    if alarm is None:
        alarm = torch.zeros((), dtype=torch.bool, device=device)
    coefficients = reference.check_count(coefficients, len(rows) + len(beside)).contiguous()
    kernel = cuda_source.build(cuda_source.combine, len(loose), 8 if n else 0, rest)
    where, met = (first, stride, n, *loose), alarm.view(torch.uint8)
    _launch(kernel, -(-d // plan.block), plan, device, *where, coefficients, value, met, d)
    return value, alarm


def _fits(row: Tensor, n: int, size: int, mix: Tensor | None, compute: torch.dtype) -> bool:
    few = size <= MOST and n <= (MOST if mix is None else MIXED)
    return few and compute == torch.float32 and row.dtype in _NARROW and 0 < row.shape[0] < 2**31 - 4096


def _plan(pass_: str, m: int, mix: Tensor | None) -> Plan:
    return plans[("" if mix is None else "mixed ") + pass_ + (" wide" if m > 32 else "")]


def _cut(d: int, plan: Plan, device: torch.device) -> tuple[int, int]:
    """How many tiles there are, and programs to go round over them: fixed numbers, so that sums come out the same."""
    tiles = -(-d // plan.block)
    return tiles, min(tiles, plan.programs * _multiprocessors(device))


@cache
def _multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1


def _coefficients(mix: Tensor | None) -> list[Tensor]:
    return [] if mix is None else [mix.to(torch.float32).contiguous()]


def _dense(vector: Tensor) -> Tensor:
    return vector if vector.stride(0) == 1 else vector.contiguous()


def _locate(rows: Rows) -> tuple[list[Any], bool, Rows]:
    """The kernel's arguments for the rows: a base and a stride, or one pointer per row (then True).

    And what they point to, some of it perhaps copies, which the caller holds until the launch.
    """
    if isinstance(rows, Tensor):
        rows = rows if rows.stride(1) == 1 else rows.contiguous()
        return [rows, rows.stride(0)], False, rows
    vectors = [_dense(row) for row in rows]
    stride, count = _spacing(vectors)
    if count == len(vectors):
        return [vectors[0], stride], False, vectors
    if len(vectors) > 32:  # such a kernel takes longer to compile than its copies take in a lifetime
        stack = torch.stack(vectors)
        return [stack, len(vectors[0])], False, stack
    return list(vectors), True, vectors


def _spacing(vectors: Sequence[Tensor]) -> tuple[int, int]:
    """The stride in elements from one vector to the next, and how many from the first on keep to it."""
    if not vectors:
        return 0, 0
    first, size = vectors[0], vectors[0].element_size()
    at = [vector.data_ptr() for vector in vectors]
    if len(at) == 1 or vectors[1].dtype != first.dtype or (at[1] - at[0]) % size:
        return 0, 1
    step = at[1] - at[0]
    count = 2
    while count < len(at) and at[count] - at[count - 1] == step and vectors[count].dtype == first.dtype:
        count += 1
    return step // size, count


def _launch(kernel: Any, programs: int, plan: Plan, device: torch.device, *arguments: Any) -> None:
    # One stage: loads of the next tile under way while this one is sorted took half as long again.
    options: dict[str, Any] = {"num_warps": plan.warps, "num_stages": 1}
    if plan.registers is not None:
        options["maxnreg"] = plan.registers
    with on(device):
        kernel[(programs,)](*arguments, BLOCK=plan.block, **options)
