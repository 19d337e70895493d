"""The passes over the stack in C (cpu.c), loaded with ctypes, which lets other Python threads run meanwhile.

The same functions as in reference.py. Nothing is stacked or copied: the library gets a pointer and a stride for every
row.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from robagg.kernels import team
from robagg.kernels.reference import Rows, Sketched, complete

_ABI = 5
KINDS = ("tq", "huber", "cc", "rfa", "mca")
_SKETCH, _TRIM, _COMBINE, _SHARES, _MEASURE = range(5)
_ISAS = ("plain", "avx2", "avx512")
_WORDS = {
    dtype: int.from_bytes(struct.pack("=ii", code, dtype.itemsize), sys.byteorder)
    for code, dtype in enumerate((torch.float32, torch.float64, torch.float16, torch.bfloat16))
}
"""The last word of a `struct row`: the dtype's number and its bytes."""
_ALONE = 1 << 16
"""Below so many elements starting threads costs more than they save."""


class _Job(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int32) for name in ("op", "isa", "wide", "threads")),
        *((name, ctypes.c_int64) for name in ("n", "m", "anchors", "d", "lo", "hi")),
        *((name, ctypes.c_void_p) for name in ("rows", "weights", "value", "spread", "gram", "alarm", "parallel")),
    )


class _Walk(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("kind", "size", "n", "f", "iterations", "anchor")),
        *((name, ctypes.c_double) for name in ("parameter", "rounding", "blur", "spread")),
        *((name, ctypes.c_void_p) for name in ("gram", "c", "reach", "tau", "scratch", "outside")),
    )


@functools.cache
def load() -> ctypes.CDLL | None:
    """The library beside this file, or None where it is missing, does not load, or is of another version."""
    path = Path(__file__).with_name("_cpu.dylib" if sys.platform == "darwin" else "_cpu.so")
    try:
        library = ctypes.CDLL(str(path))
        if library.robagg_abi() != _ABI:
            return None
        library.robagg_run.argtypes = [ctypes.POINTER(_Job)]
        library.robagg_walk.argtypes = [ctypes.POINTER(_Walk)]
        library.robagg_walk.restype = None
    except (OSError, AttributeError):
        return None
    return library


def available() -> bool:
    """Whether the library is there to run."""
    return load() is not None


def isas() -> tuple[str, ...]:
    """The instruction sets of the library that this machine has, best last."""
    library = load()
    return () if library is None else _ISAS[: library.robagg_isa() + 1]


@functools.cache
def isa() -> str:
    """The instruction set that runs: the best there is, or the one that the environment names in ROBAGG_ISA."""
    there = isas()
    if not there:
        raise RuntimeError("the CPU kernels are not there: build them with `python hatch_build.py` or reinstall robagg")
    wanted = os.environ.get("ROBAGG_ISA", there[-1])
    if wanted not in there:
        raise ValueError(f"ROBAGG_ISA must be one of {', '.join(there)} on this machine, got {wanted}")
    return wanted


def sketch(
    rows: Rows,
    *,
    mix: Tensor | None = None,
    anchors: Sequence[Tensor | None] = (),
    compute: torch.dtype,
    isa: str | None = None,
    spare: Tensor | None = None,
) -> Sketched:
    """Median (d,), spread (), and the Gram matrix (m+a, m+a) of rows and anchors about the median."""
    m = len(rows) if mix is None else mix.shape[0]
    median = _take(rows[0].shape[0], compute, spare)
    spread = torch.zeros((), dtype=torch.float64)
    gram = torch.zeros(m + len(anchors), m + len(anchors), dtype=torch.float64)
    _run(_SKETCH, rows, isa, anchors=anchors, weights=mix, m=m, value=median, spread=spread, gram=gram)
    square = None if mix is None else measure([median], None, isa=isa)[0]
    return median, spread, gram, square


def trim(
    rows: Rows, lo: int, hi: int, *, mix: Tensor | None = None, compute: torch.dtype, isa: str | None = None
) -> tuple[Tensor, Tensor]:
    """Per coordinate the mean of the sorted values lo, ..., hi-1 (d,), and whether any input is not finite ()."""
    m = _check_range(rows, lo, hi, mix)
    value = torch.empty(rows[0].shape[0], dtype=compute)
    alarm = torch.zeros((), dtype=torch.bool)
    _run(_TRIM, rows, isa, weights=mix, m=m, lo=lo, hi=hi, value=value, alarm=alarm)
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
    met = torch.zeros((), dtype=torch.bool)
    if len(used) < len(vectors):
        vectors, coefficients = [vectors[k] for k in used], coefficients[used]
    _run(_COMBINE, vectors, isa, weights=coefficients, m=0, value=value, alarm=met)
    return value, met if alarm is None else alarm | met


def shares(
    rows: Rows, lo: int, hi: int, *, mix: Tensor | None = None, compute: torch.dtype, isa: str | None = None
) -> Tensor:
    """How many coordinates (m,) each row has within the sorted values lo, ..., hi-1; rows that do share it."""
    m = _check_range(rows, lo, hi, mix)
    counts = torch.zeros(m, dtype=torch.float64)
    _run(_SHARES, rows, isa, weights=mix, m=m, lo=lo, hi=hi, gram=counts, compute=compute)
    return counts


def measure(rows: Rows, point: Tensor | None, *, isa: str | None = None) -> Tensor:
    """The squared distances (n,) of the rows to a point (d,), or to the origin, computed in float64."""
    squares = torch.zeros(len(rows), dtype=torch.float64)
    _run(_MEASURE, rows, isa, weights=None, m=len(rows), anchors=[point], gram=squares, compute=torch.float64)
    return squares


def walk(
    kind: str,
    gram: Tensor,
    spread: Tensor,
    n: int,
    f: int,
    iterations: int,
    parameter: float | None,
    rounding: float,
    blur: Tensor | None,
    anchor: int | None,
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor]:
    """The whole loop of a rule; arguments and results as of `cuda_gram.walk`."""
    library = load()
    assert library is not None
    size, gram = len(gram), gram.contiguous()
    # One block for all that is written: coefficients, distances, tau, scratch.
    room = torch.empty(5 * size + n + 1, dtype=torch.float64)
    outside = torch.empty(n, dtype=torch.bool)
    at = room.data_ptr()
    job = _Walk(
        kind=KINDS.index(kind),
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
        c=at,
        reach=at + 8 * size,
        tau=at + 8 * (size + n),
        scratch=at + 8 * (size + n + 1),
        outside=outside.data_ptr(),
    )
    library.robagg_walk(ctypes.byref(job))
    coefficients, reach, tau = room[:size], room[size : size + n], room[size + n]
    if kind in ("rfa", "mca"):
        return coefficients, None, None, reach
    return coefficients, tau, outside, reach


def _check_range(rows: Rows, lo: int, hi: int, mix: Tensor | None) -> int:
    """How many rows are sorted."""
    m = len(rows) if mix is None else mix.shape[0]
    if not 0 <= lo < hi <= m:
        raise ValueError(f"sorted values are wanted with 0 <= lo < hi <= {m} rows, got lo={lo}, hi={hi}")
    return m


def _take(d: int, dtype: torch.dtype, spare: Tensor | None) -> Tensor:
    """Memory for a result (d,): the spare where it fits. A column is read before it is written, so it may be a row."""
    if spare is not None and spare.shape == (d,) and spare.dtype == dtype and spare.is_contiguous():
        return spare
    return torch.empty(d, dtype=dtype)


def _run(
    op: int,
    rows: Rows,
    isa_: str | None,
    *,
    weights: Tensor | None,
    m: int,
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
    described = _describe(rows, anchors, d)
    job = _Job(
        op=op,
        isa=_ISAS.index(name),
        wide=compute == torch.float64,
        threads=torch.get_num_threads() if n * d > _ALONE else 1,
        n=n,
        m=m,
        anchors=len(anchors),
        d=d,
        lo=lo,
        hi=hi,
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
        raise ValueError(f"rows and anchors must lie in the memory of the CPU, got one on {tensor.device}{lack}")
    return address


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
