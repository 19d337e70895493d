"""The passes over the stack in C (cpu.c).

The same functions as in reference.py. Nothing is stacked or copied: the library gets a pointer and a stride for every
row.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from robagg.kernels import cpu_many
from robagg.kernels.cpu_gram import walk
from robagg.kernels.cpu_job import COMBINE, MEASURE, SHARES, SKETCH, TRIM, run, zeros
from robagg.kernels.cpu_library import available, isa, isas
from robagg.kernels.reference import complete
from robagg.kernels.types import Rows, Sketched

__all__ = ["available", "combine", "isa", "isas", "measure", "shares", "sketch", "trim", "walk"]


def sketch(
    rows: Rows,
    *,
    mix: Tensor | None = None,
    anchors: Sequence[Tensor | None] = (),
    votes: Tensor | None = None,
    compute: torch.dtype,
    isa: str | None = None,
    spare: Tensor | None = None,
    floor: Tensor | None = None,
) -> Sketched:
    """Median, spread and Gram matrix; see `reference.sketch`."""
    m = len(rows) if mix is None else mix.shape[0]
    median = _take(rows[0].shape[0], compute, spare)
    if cpu_many.is_for(m):
        return cpu_many.sketch(rows, median, mix=mix, anchors=anchors, votes=votes, isa=isa, floor=floor)
    spread = zeros()
    gram = zeros(m + len(anchors), m + len(anchors))
    run(
        SKETCH, rows, isa, anchors=anchors, weights=mix, votes=votes, m=m, floor=floor,
        value=median, spread=spread, gram=gram,
    )  # fmt: skip
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
    alarm = zeros(dtype=torch.bool)
    if mix is not None and cpu_many.is_for(m, mix):
        for columns, y in cpu_many.form(rows, mix, compute, isa):
            run(TRIM, y, isa, weights=None, votes=votes, m=m, lo=lo, hi=hi, value=value[columns], alarm=alarm)
        return value, alarm
    run(TRIM, rows, isa, weights=mix, votes=votes, m=m, lo=lo, hi=hi, value=value, alarm=alarm)
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
    met = zeros(dtype=torch.bool)
    if len(used) < len(vectors):
        vectors, coefficients = [vectors[k] for k in used], coefficients[used]
    run(COMBINE, vectors, isa, weights=coefficients, m=0, value=value, alarm=met)
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
    counts = zeros(m)
    if mix is not None and cpu_many.is_for(m, mix):
        for _, y in cpu_many.form(rows, mix, compute, isa):
            run(SHARES, y, isa, weights=None, votes=votes, m=m, lo=lo, hi=hi, gram=counts, compute=compute)
        return counts
    run(SHARES, rows, isa, weights=mix, votes=votes, m=m, lo=lo, hi=hi, gram=counts, compute=compute)
    return counts


def measure(rows: Rows, point: Tensor | None, *, isa: str | None = None) -> Tensor:
    """The squared distances (n,) of the rows to a point (d,), or to the origin, computed in float64."""
    squares = zeros(len(rows))
    run(MEASURE, rows, isa, weights=None, m=len(rows), anchors=[point], gram=squares, compute=torch.float64)
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
