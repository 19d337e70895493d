"""The passes over the stack in plain torch: what every other kernel is compared with, and the path where there is none.

Rows are an (n, d) tensor of any strides, or n vectors of length d that lie anywhere in memory. With `mix`, an (m, n)
float64 matrix, the passes see the m rows `mix @ x`, formed a tile of columns at a time and never stored. Values are
computed and returned in the dtype `compute` (float32 or float64); sums over coordinates are float64.

With `votes`, (m,) int64 with a sum below 2^31, row i counts as votes[i] copies of itself wherever values are sorted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from robagg.kernels.types import Examined, Rows, Sketched
from robagg.kernels.units import per_unit
from robagg.kernels.votes import mean_votes, middle_vote, share_votes


def sketch(
    rows: Rows,
    *,
    mix: Tensor | None = None,
    anchors: Sequence[Tensor | None] = (),
    votes: Tensor | None = None,
    compute: torch.dtype,
    floor: Tensor | None = None,
) -> Sketched:
    """Median, spread V = sum_j MAD_j^2, and the Gram matrix of rows and anchors about the median.

    Of mixed rows also the squared length of the median, to which their rounding is in proportion. With `floor` () the
    products are of columns divided by the root of MAD_j^2 + floor; of a column where that is 0, nothing is left.
    An anchor is a vector (d,), or None for the origin. A row that is not finite shows in the Gram matrix's diagonal.
    """
    m = mix.shape[0] if mix is not None else len(rows)
    d, device = rows[0].shape[0], rows[0].device
    size = m + len(anchors)
    median = torch.empty(d, dtype=compute, device=device)
    spread = torch.zeros((), dtype=torch.float64, device=device)
    gram = torch.zeros(size, size, dtype=torch.float64, device=device)
    square = None if mix is None else torch.zeros((), dtype=torch.float64, device=device)
    wide = device.type != "cpu"  # an accelerator's matrix product may round float32 to TF32
    for columns in tiles(d, device, len(rows)):
        x = tile(rows, columns, compute)
        if mix is not None:
            x = mixed(mix, x)
        s = x.sort(dim=0).values if votes is None else x
        centre = middle(s) if votes is None else middle_vote(x, votes)
        away = mad(s, centre) if votes is None else middle_vote((x - centre).abs(), votes)
        median[columns] = centre
        spread += away.double().square().sum()
        if square is not None:
            square += centre.double().square().sum()
        points = [x, *((torch.zeros_like(centre) if a is None else a[columns].to(compute))[None] for a in anchors)]
        y = torch.cat(points) - centre
        if floor is not None:
            y = y * per_unit(away, floor)
        y = y.double() if wide else y
        gram += (y @ y.T).double()
    return Sketched(median, spread, gram, square)


def trim(
    rows: Rows,
    lo: int,
    hi: int,
    *,
    mix: Tensor | None = None,
    votes: Tensor | None = None,
    compute: torch.dtype,
) -> tuple[Tensor, Tensor]:
    """Per coordinate the mean of the sorted values lo, ..., hi-1 (d,), and whether any input is not finite ()."""
    d, device = rows[0].shape[0], rows[0].device
    value = torch.empty(d, dtype=compute, device=device)
    alarm = torch.zeros((), dtype=torch.bool, device=device)
    for columns in tiles(d, device, len(rows)):
        x = tile(rows, columns, compute)
        alarm |= ~torch.isfinite(x).all()
        if mix is not None:
            x = mixed(mix, x)
        if votes is not None:
            value[columns] = mean_votes(x, votes, lo, hi)
            continue
        value[columns] = (x.sort(dim=0).values[lo:hi] / (hi - lo)).sum(dim=0)
    return value, alarm


def combine(
    rows: Rows,
    coefficients: Tensor,
    *,
    beside: Sequence[Tensor] = (),
    compute: torch.dtype,
    alarm: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The sum of coefficient times vector (d,), of rows and those beside them.

    And whether any of it is not finite (), or an earlier `alarm` was set. Where a coefficient is missing, the last
    vector has what the others leave of 1. On a CPU a coefficient 0 skips its vector, so that a row without
    weight is not read.
    """
    vectors = [*rows, *beside]
    coefficients = complete(coefficients, len(vectors))
    d, device = vectors[0].shape[0], vectors[0].device
    value = torch.zeros(d, dtype=compute, device=device)
    if device.type == "cpu":
        for vector, c in zip(vectors, coefficients.tolist(), strict=True):
            if c != 0:
                value.add_(vector.to(compute), alpha=c)
    else:
        for vector, weight in zip(vectors, coefficients.to(compute), strict=True):
            value.addcmul_(vector.to(compute), weight)
    met = ~torch.isfinite(value).all()
    return value, met if alarm is None else alarm | met


def complete(coefficients: Tensor, count: int) -> Tensor:
    """One coefficient a vector: the last, where it is missing, makes the sum 1."""
    if check_count(coefficients, count).shape[0] == count:
        return coefficients
    coefficients = coefficients.double()
    return torch.cat([coefficients, 1 - coefficients.sum()[None]])


def check_count(coefficients: Tensor, count: int) -> Tensor:
    """The coefficients, if they are as many as the vectors or one fewer."""
    if not count - 1 <= (given := coefficients.shape[0]) <= count:
        raise ValueError(f"coefficients for {count} vectors must be {count - 1} or {count}, got {given}")
    return coefficients


def shares(
    rows: Rows,
    lo: int,
    hi: int,
    *,
    mix: Tensor | None = None,
    votes: Tensor | None = None,
    compute: torch.dtype,
) -> Tensor:
    """How many coordinates (m,) each row has within the sorted values lo, ..., hi-1; rows that do share it.

    With votes each has the share of the range that its copies are; rows that are equal share theirs by their votes.
    """
    m = mix.shape[0] if mix is not None else len(rows)
    d, device = rows[0].shape[0], rows[0].device
    counts = torch.zeros(m, dtype=torch.float64, device=device)
    for columns in tiles(d, device, len(rows)):
        x = tile(rows, columns, compute)
        if mix is not None:
            x = mixed(mix, x)
        if votes is not None:
            counts += share_votes(x, votes, lo, hi).sum(dim=1)
            continue
        s = x.sort(dim=0).values
        kept = (x >= s[lo]) & (x <= s[hi - 1])
        counts += (kept / kept.sum(dim=0).clamp(min=1)).double().sum(dim=1)
    return counts


def measure(rows: Rows, point: Tensor | None) -> Tensor:
    """The squared distances (n,) of the rows to a point (d,), or to the origin, computed in float64."""
    d, device = rows[0].shape[0], rows[0].device
    squares = torch.zeros(len(rows), dtype=torch.float64, device=device)
    for columns in tiles(d, device, len(rows)):
        centre = 0.0 if point is None else point[columns].double()
        for k, row in enumerate(rows):
            squares[k] += (row[columns].double() - centre).square_().sum()
    return squares


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
    """Whether a sketch can be computed with (), its spread () and its blur ().

    It cannot where a diagonal entry of the Gram matrix is not finite, or more than `few` of the first n are below
    `tiny`, or an earlier `alarm` was set. The sums that made mixed rows were rounded in proportion to the rows, not to
    their gaps: the blur is `grain` times `square`, the squared length of their median. Where most of them coincide, the
    spread is rounding too, and a walk would multiply it step by step: a spread not above the blur becomes 0.
    """
    squares = gram.diagonal()
    if squares.device.type == "cpu":  # twenty numbers: Python looks at them faster than torch
        s = squares.tolist()
        met = torch.tensor(not all(x < math.inf for x in s) or sum(x < tiny for x in s[:n]) > few, device="cpu")
    else:
        met = ~(squares < torch.inf).all() | ((squares[:n] < tiny).sum() > few)
    met = met if alarm is None else alarm | met
    if square is None:
        return Examined(met, spread, 0.0)
    blur = grain * square
    return Examined(met, spread * (spread > blur), blur)


def tiles(d: int, device: torch.device, n: int) -> Iterator[slice]:
    """Ranges of columns that cover d: small enough for a cache on a CPU, large enough to fill an accelerator."""
    width = 8192 if device.type == "cpu" else min(1 << 20, (1 << 27) // n)
    return (slice(j, min(j + width, d)) for j in range(0, d, width))


def tile(rows: Rows, columns: slice, compute: torch.dtype) -> Tensor:
    """The (n, columns) part of the rows, in the compute dtype."""
    if isinstance(rows, Tensor):
        return rows[:, columns].to(compute)
    return torch.stack([row[columns] for row in rows]).to(compute)


def mixed(mix: Tensor, x: Tensor) -> Tensor:
    """`mix @ x`; on a CPU in the dtype of x, on an accelerator in float64 (no TF32)."""
    if x.device.type == "cpu":
        return mix.to(x.dtype) @ x
    return (mix @ x.double()).to(x.dtype)


def middle(s: Tensor) -> Tensor:
    """Median of sorted rows (n, t): for even n the midpoint, which does not overflow."""
    n = s.shape[0]
    if n % 2:
        return s[n // 2]
    return s[n // 2 - 1] / 2 + s[n // 2] / 2


def mad(s: Tensor, centre: Tensor) -> Tensor:
    """Median of |s - centre| for sorted rows (n, t), without a second sort.

    The distances to the left and to the right of the median are sorted already; their two middle values are
    max min and min max over opposite pairs.
    """
    n = s.shape[0]
    h = n // 2
    if h == 0:
        return torch.zeros_like(centre)
    left = centre - s[:h].flip(0)
    right = s[n - h :].flip(0) - centre
    lo = torch.minimum(left, right).amax(dim=0)
    if n % 2:
        return lo
    hi = torch.maximum(left, right).amin(dim=0)
    return lo / 2 + hi / 2
