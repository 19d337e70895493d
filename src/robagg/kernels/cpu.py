"""The passes over the stack in C (cpu.c).

The same functions as in reference.py. Nothing is stacked or copied: the library gets a pointer and a stride for every
row.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Sequence

import torch
from torch import Tensor

from robagg.kernels import team
from robagg.kernels.cpu_gram import walk
from robagg.kernels.cpu_library import ISAS, Job, available, isa, isas, load
from robagg.kernels.reference import complete
from robagg.kernels.types import Rows, Sketched

__all__ = ["available", "combine", "isa", "isas", "load", "measure", "shares", "sketch", "trim", "walk"]

_SKETCH, _TRIM, _COMBINE, _SHARES, _MEASURE = range(5)
_WORDS = {
    dtype: int.from_bytes(struct.pack("=ii", code, dtype.itemsize), sys.byteorder)
    for code, dtype in enumerate((torch.float32, torch.float64, torch.float16, torch.bfloat16))
}
"""The last word of a `struct row`: the dtype's number and its bytes."""
_ALONE = 1 << 16
"""Below so many elements starting threads costs more than they save."""


def sketch(
    rows: Rows,
    *,
    mix: Tensor | None = None,
    anchors: Sequence[Tensor | None] = (),
    votes: Tensor | None = None,
    compute: torch.dtype,
    isa: str | None = None,
    spare: Tensor | None = None,
) -> Sketched:
    """Median, spread and Gram matrix; see `reference.sketch`."""
    m = len(rows) if mix is None else mix.shape[0]
    median = _take(rows[0].shape[0], compute, spare)
    spread = _zeros()
    gram = _zeros(m + len(anchors), m + len(anchors))
    _run(_SKETCH, rows, isa, anchors=anchors, weights=mix, votes=votes, m=m, value=median, spread=spread, gram=gram)
    square = None if mix is None else measure([median], None, isa=isa)[0]
    return Sketched(median, spread, gram, square)


def trim(
    rows: Rows,
    lo: int,
    hi: int,
    *,
    mix: Tensor | None = None,
    votes: Tensor | None = None,
    compute: torch.dtype,
    isa: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Per coordinate the mean of the sorted values lo, ..., hi-1 (d,), and whether any input is not finite ()."""
    m = _check_range(rows, lo, hi, mix, votes)
    value = _take(rows[0].shape[0], compute, None)
    alarm = _zeros(dtype=torch.bool)
    _run(_TRIM, rows, isa, weights=mix, votes=votes, m=m, lo=lo, hi=hi, value=value, alarm=alarm)
    return value, alarm


def combine(
    rows: Rows,
    coefficients: Tensor,
    *,
    beside: Sequence[Tensor] = (),
    compute: torch.dtype,
    isa: str | None = None,
    spare: Tensor | None = None,
    alarm: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The weighted sum of vectors; see `reference.combine`. A coefficient 0 skips one."""
    vectors: Rows = [*rows, *beside] if beside else rows
    coefficients = complete(coefficients, len(vectors))
    used = [k for k, c in enumerate(coefficients.tolist()) if c != 0]
    value = _take(vectors[0].shape[0], compute, spare)
    met = _zeros(dtype=torch.bool)
    if len(used) < len(vectors):
        vectors, coefficients = [vectors[k] for k in used], coefficients[used]
    _run(_COMBINE, vectors, isa, weights=coefficients, m=0, value=value, alarm=met)
    return value, met if alarm is None else alarm | met


def shares(
    rows: Rows,
    lo: int,
    hi: int,
    *,
    mix: Tensor | None = None,
    votes: Tensor | None = None,
    compute: torch.dtype,
    isa: str | None = None,
) -> Tensor:
    """How many coordinates (m,) each row has within the sorted values lo, ..., hi-1; see `reference.shares`."""
    m = _check_range(rows, lo, hi, mix, votes)
    counts = _zeros(m)
    _run(_SHARES, rows, isa, weights=mix, votes=votes, m=m, lo=lo, hi=hi, gram=counts, compute=compute)
    return counts


def measure(rows: Rows, point: Tensor | None, *, isa: str | None = None) -> Tensor:
    """The squared distances (n,) of the rows to a point (d,), or to the origin, computed in float64."""
    squares = _zeros(len(rows))
    _run(_MEASURE, rows, isa, weights=None, m=len(rows), anchors=[point], gram=squares, compute=torch.float64)
    return squares


def _check_range(rows: Rows, lo: int, hi: int, mix: Tensor | None, votes: Tensor | None) -> int:
    """How many rows are sorted."""
    m = len(rows) if mix is None else mix.shape[0]
    most = m if votes is None else int(votes.sum())
    if not 0 <= lo < hi <= most:
        raise ValueError(f"the range of sorted values must have 0 <= lo < hi <= {most} rows, got lo={lo}, hi={hi}")
    return m


def _take(d: int, dtype: torch.dtype, spare: Tensor | None) -> Tensor:
    """Memory for a result (d,): the spare where it fits. A column is read before it is written, so it may be a row."""
    if spare is not None and spare.shape == (d,) and spare.dtype == dtype and spare.is_contiguous():
        return spare
    return torch.empty(d, dtype=dtype, device="cpu")


def _zeros(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """On the CPU, whatever torch's default device is: the library writes where they lie."""
    return torch.zeros(shape, dtype=dtype, device="cpu")


def _run(
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
    spread: Tensor | None = None,
    gram: Tensor | None = None,
    alarm: Tensor | None = None,
) -> None:
    library = load()
    name = isa_ or isa()  # says what to do where there is no library
    if library is None or name not in isas():
        raise ValueError(f"isa must be one of {', '.join(isas())} on this machine, got {name}")
    n = len(rows)
    d, compute = (rows[0].shape[0], compute) if value is None else (value.shape[0], value.dtype)
    if weights is not None:
        weights = weights.to(torch.float64).contiguous()
    if votes is not None and (votes.shape != (m,) or votes.dtype != torch.int64 or not votes.is_contiguous()):
        raise ValueError(f"votes must be a whole number for each of {m} rows, got {tuple(votes.shape)} {votes.dtype}")
    described = _describe(rows, anchors, d)
    job = Job(
        op=op,
        isa=ISAS.index(name),
        wide=compute == torch.float64,
        threads=torch.get_num_threads() if n * d > _ALONE else 1,
        n=n,
        m=m,
        anchors=len(anchors),
        d=d,
        lo=lo,
        hi=hi,
        votes=_address(votes),
        rows=ctypes.addressof(described),
        weights=_address(weights),
        value=_address(value),
        spread=_address(spread),
        gram=_address(gram),
        alarm=_address(alarm),
        parallel=team.address(),
    )
    if library.robagg_run(ctypes.byref(job)):
        raise MemoryError(f"no memory for the scratch space of {n} rows")


def _describe(rows: Rows, anchors: Sequence[Tensor | None], d: int) -> ctypes.Array[ctypes.c_int64]:
    """The rows and anchors as the library's `struct row`s, each of them three words: where, stride, dtype and bytes."""
    words: list[int] = []
    vectors: list[Tensor | None] = [*anchors]
    if isinstance(rows, Tensor):
        start, step = _locate(rows), rows.stride(0) * rows.element_size()
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
        words += (_locate(vector), vector.stride(0), _WORDS[vector.dtype])
    return (ctypes.c_int64 * len(words))(*words)


def _locate(tensor: Tensor) -> int:
    """Where its numbers lie. Torch has tensors that lie nowhere (`_efficientzerotensor`, the device meta)."""
    address = tensor.data_ptr()
    if not tensor.is_cpu or (not address and tensor.numel()):
        lack = "" if address else " without memory"
        raise ValueError(f"all vectors must lie in the memory of the CPU, got one on {tensor.device}{lack}")
    return address


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else _locate(tensor)
