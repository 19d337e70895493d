"""The passes over many rows in C (cpu_many.h): products panel by panel, projections, and each row's nearest rows.

Beyond `MOST` rows a matrix of sums no longer fits into a cache beside the rows, so that columns are passed over twice:
once for the median, which is found without sorting, and once for the products of all pairs about it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from robagg.kernels import team
from robagg.kernels.cpu_job import ALONE, SPREAD, choose_isa, describe, locate, run, zeros
from robagg.kernels.cpu_library import Nearest, Product, Projection, load
from robagg.kernels.reference import tile
from robagg.kernels.types import Rows, Sketched
from robagg.kernels.units import per_unit

MOST = 512
"""Rows up to which one pass that makes median, spread and products is faster."""
BLOCK = 2048
"""Columns of mixed rows that are formed at a time."""
SPARSE = 8
"""A mix with fewer numbers than one in so many is multiplied one by one, in the pass that sorts."""


def available() -> bool:
    """Whether the library is there and has these passes: one that was built before them is as good for the rest."""
    return hasattr(load(), "robagg_product")


def is_for(m: int, mix: Tensor | None = None) -> bool:
    """Whether so many rows, mixed so, are many."""
    dense = mix is None or SPARSE * int(mix.count_nonzero()) > mix.numel()
    return m > MOST and dense and available()


def sketch(
    rows: Rows,
    median: Tensor,
    *,
    mix: Tensor | None,
    anchors: Sequence[Tensor | None],
    votes: Tensor | None,
    isa: str | None,
    floor: Tensor | None = None,
) -> Sketched:
    """Median, which is written to its place, spread and Gram matrix; see `reference.sketch`."""
    compute = median.dtype
    if mix is None and floor is None:
        spread, _ = find_spread(rows, median, votes=votes, isa=isa)
        return Sketched(median, spread, multiply(rows, anchors=anchors, centre=median, compute=compute, isa=isa), None)
    spread, square, size = zeros(), zeros(), len(rows if mix is None else mix) + len(anchors)
    gram = zeros(size, size)
    for columns, y in form(rows, mix, compute, isa):
        centre = median[columns]
        spread += find_spread(y, centre, votes=votes, isa=isa)[0]
        square += centre.double().square().sum()
        points = [None if point is None else point[columns] for point in anchors]
        if floor is None:
            gram += multiply(y, anchors=points, centre=centre, compute=compute, isa=isa)
            continue
        mad, ends = torch.empty_like(centre), [torch.zeros_like(centre) if p is None else p.to(compute) for p in points]
        find_spread((y - centre).abs_(), mad, votes=votes, isa=isa)
        y = (torch.cat([y, *(end[None] for end in ends)]) - centre) * per_unit(mad, floor)
        gram += multiply(y, compute=compute, isa=isa)
    return Sketched(median, spread, gram, None if mix is None else square)


def find_spread(
    rows: Rows,
    median: Tensor,
    *,
    mix: Tensor | None = None,
    votes: Tensor | None = None,
    isa: str | None = None,
) -> tuple[Tensor, Tensor | None]:
    """V () of the rows, whose median is written to its place; see `many.find_spread`."""
    spread = zeros()
    if mix is None:
        run(SPREAD, rows, isa, weights=None, votes=votes, m=len(rows), value=median, spread=spread)
        return spread, None
    square = zeros()
    for columns, y in form(rows, mix, median.dtype, isa):
        spread += find_spread(y, median[columns], votes=votes, isa=isa)[0]
        square += median[columns].double().square().sum()
    return spread, square


def mix_gram(mix: Tensor, gram: Tensor) -> Tensor:
    """W G W^T for a matrix (m, n) and a symmetric one (n, n), so many rows at a time that little lies beside them."""
    m = len(mix)
    out = _zeros(m, m)
    for i in range(0, m, BLOCK // 8):
        rows = slice(i, min(i + BLOCK // 8, m))
        part = multiply(multiply(mix[rows], gram, compute=torch.float64), mix[: rows.stop], compute=torch.float64)
        part[:, i:] = (part[:, i:] + part[:, i:].T) / 2
        out[rows, : rows.stop] = part
        out[:i, rows] = part[:, :i].T
    return out


def form(
    rows: Rows, mix: Tensor | None, compute: torch.dtype, isa: str | None = None
) -> Iterator[tuple[slice, Tensor]]:
    """The mixed rows (m, t), or without a mix the rows, a range of columns after the other."""
    d = rows[0].shape[0]
    for j in range(0, d, BLOCK):
        columns = slice(j, min(j + BLOCK, d))
        x = tile(rows, columns, compute)
        yield columns, x if mix is None else multiply(mix, x.T.contiguous(), compute=compute, isa=isa).to(compute)


def multiply(
    left: Rows,
    right: Rows | None = None,
    *,
    anchors: Sequence[Tensor | None] = (),
    centre: Tensor | None = None,
    compute: torch.dtype,
    isa: str | None = None,
) -> Tensor:
    """The inner products in float64 of rows with others (m, n), or of rows and anchors with each other.

    They are those of their differences to the centre (d,). An anchor that is None is the origin.
    """
    d = left[0].shape[0]
    ours = describe(left, anchors, d)
    theirs = ours if right is None else describe(right, (), d)
    m, n = len(ours) // 3, len(theirs) // 3
    out = _zeros(m, n)
    job = Product(
        isa=choose_isa(isa),
        wide=compute == torch.float64,
        threads=_threads(m * n * d),
        same=right is None,
        m=m,
        n=n,
        d=d,
        left=ctypes.addressof(ours),
        right=ctypes.addressof(theirs),
        centre=describe([], [centre], d),
        out=locate(out),
        parallel=team.address(),
    )
    _call("robagg_product", job, m + n)
    return out


def project(rows: Rows, signs: Tensor, shifts: Tensor, out: Tensor, *, isa: str | None = None) -> None:
    """Add the rows' projections to `out` (n, k); see `many.project`."""
    described = describe(rows, (), len(signs))
    job = Projection(
        isa=choose_isa(isa),
        wide=out.dtype == torch.float64,
        threads=_threads(len(rows) * len(signs)),
        n=len(rows),
        d=len(signs),
        k=out.shape[1],
        rows=ctypes.addressof(described),
        signs=locate(signs),
        shifts=locate(shifts),
        out=locate(out),
        parallel=team.address(),
    )
    _call("robagg_project", job, len(rows))


def sum_nearest(gram: Tensor, n: int, count: int, *, isa: str | None = None) -> Tensor:
    """The sums (n,) of each row's squared distances to its nearest rows, itself included."""
    sums = zeros(n)
    _find_nearest(gram, n, count, sums, None, isa)
    return sums


def nearest_means(gram: Tensor, n: int, count: int, *, isa: str | None = None) -> Tensor:
    """(n, n+a): the matrix that makes each row the mean of its nearest rows."""
    means = _zeros(n, len(gram))
    _find_nearest(gram, n, count, None, means, isa)
    return means


def _find_nearest(gram: Tensor, n: int, count: int, sums: Tensor | None, means: Tensor | None, isa: str | None) -> None:
    gram = gram.contiguous()
    job = Nearest(
        isa=choose_isa(isa),
        threads=_threads(n * n),
        n=n,
        size=len(gram),
        count=count,
        gram=locate(gram),
        sums=None if sums is None else locate(sums),
        means=None if means is None else locate(means),
        parallel=team.address(),
    )
    _call("robagg_nearest", job, n)


def _zeros(m: int, n: int) -> Tensor:
    """Zeros (m, n) float64, from numpy: it asks for large pages, and getting small ones takes as long as the work."""
    return torch.from_numpy(np.zeros((m, n)))


def _threads(work: int) -> int:
    return torch.get_num_threads() if work > ALONE else 1


def _call(name: str, job: ctypes.Structure, n: int) -> None:
    library = load()
    assert library is not None
    if getattr(library, name)(ctypes.byref(job)):
        raise MemoryError(f"no memory for the scratch space of {n} rows")
