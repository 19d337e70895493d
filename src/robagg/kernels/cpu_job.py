"""Jobs for the C library: rows as it takes them, and the passes of cpu_passes.h; nothing is stacked or copied."""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Sequence

import torch
from torch import Tensor

from robagg.kernels import team
from robagg.kernels.cpu_library import ISAS, Job, isa, isas, load
from robagg.kernels.types import Rows

SKETCH, TRIM, COMBINE, SHARES, MEASURE, SPREAD = range(6)
_WORDS = {
    dtype: int.from_bytes(struct.pack("=ii", code, dtype.itemsize), sys.byteorder)
    for code, dtype in enumerate((torch.float32, torch.float64, torch.float16, torch.bfloat16))
}
"""The last word of a `struct row`: the dtype's number and its bytes."""
ALONE = 1 << 16
"""Below so many elements starting threads costs more than they save."""


def describe(rows: Rows, anchors: Sequence[Tensor | None], d: int) -> ctypes.Array[ctypes.c_int64]:
    """The rows and anchors as the library's `struct row`s, each of them three words: where, stride, dtype and bytes."""
    words: list[int] = []
    vectors: list[Tensor | None] = [*anchors]
    if isinstance(rows, Tensor):
        start, step = locate(rows), rows.stride(0) * rows.element_size()
        stride, kind = rows.stride(1), _WORDS[rows.dtype]
        for k in range(len(rows)):
            words += (start + k * step, stride, kind)
    else:
        vectors[:0] = rows
    for vector in vectors:
        if vector is None:
            words += (0, 1, 0)
            continue
        if vector.shape != (d,):
            raise ValueError(f"every row and anchor must have shape ({d},) like the first, got {tuple(vector.shape)}")
        words += (locate(vector), vector.stride(0), _WORDS[vector.dtype])
    return (ctypes.c_int64 * len(words))(*words)


def choose_isa(asked: str | None) -> int:
    """The number of an instruction set: the one that is asked for, or else the one that runs."""
    name = asked or isa()  # says what to do where there is no library
    if name not in isas():
        raise ValueError(f"isa must be one of {', '.join(isas())} on this machine, got {name}")
    return ISAS.index(name)


def locate(tensor: Tensor) -> int:
    """Where its numbers lie. Torch has tensors that lie nowhere (`_efficientzerotensor`, the device meta)."""
    address = tensor.data_ptr()
    if not tensor.is_cpu or (not address and tensor.numel()):
        lack = "" if address else " without memory"
        raise ValueError(f"all vectors must lie in the memory of the CPU, got one on {tensor.device}{lack}")
    return address


def zeros(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """On the CPU, whatever torch's default device is: the library writes where they lie."""
    return torch.zeros(shape, dtype=dtype, device="cpu")


def run(
    op: int,
    rows: Rows,
    isa_: str | None,
    *,
    weights: Tensor | None,
    m: int,
    votes: Tensor | None = None,
    value: Tensor | None = None,
    compute: torch.dtype | None = None,
    anchors: Sequence[Tensor | None] = (),
    lo: int = 0,
    hi: int = 0,
    floor: Tensor | None = None,
    spread: Tensor | None = None,
    gram: Tensor | None = None,
    alarm: Tensor | None = None,
) -> None:
    number = choose_isa(isa_)
    library = load()
    assert library is not None
    n = len(rows)
    d, compute = (rows[0].shape[0], compute) if value is None else (value.shape[0], value.dtype)
    if weights is not None:
        weights = weights.to(torch.float64).contiguous()
    if votes is not None and (votes.shape != (m,) or votes.dtype != torch.int64 or not votes.is_contiguous()):
        raise ValueError(f"votes must be a whole number for each of {m} rows, got {tuple(votes.shape)} {votes.dtype}")
    if votes is not None and not votes.any():
        raise ValueError(f"votes must hold one that is not 0, got 0 for each of {m} rows")
    described = describe(rows, anchors, d)
    job = Job(
        op=op,
        isa=number,
        wide=compute == torch.float64,
        threads=torch.get_num_threads() if n * d > ALONE else 1,
        n=n,
        m=m,
        anchors=len(anchors),
        d=d,
        lo=lo,
        hi=hi,
        votes=address(votes),
        rows=ctypes.addressof(described),
        weights=address(weights),
        value=address(value),
        spread=address(spread),
        gram=address(gram),
        alarm=address(alarm),
        parallel=team.address(),
        floor=-1.0 if floor is None else float(floor),
    )
    if library.robagg_run(ctypes.byref(job)):
        raise MemoryError(f"no memory for the scratch space of {n} rows")


def address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else locate(tensor)
