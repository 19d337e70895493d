"""All that a distance rule needs to know of the stack: an n x n matrix and one number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from robagg import kernels
from robagg.kernels.types import Rows
from robagg.kernels.votes import middle_vote

LEAST = 0.01
"""Of the mean squared MAD: no coordinate's squared unit is smaller."""


# Below these sums of squares, float32 and float64 lose distances to underflow: as much an alarm as an overflow.
TINY = {torch.float32: 2.0**-80, torch.float64: 2.0**-880}
ROUNDING = {torch.float32: 2.0**-20, torch.float64: 2.0**-46}


class AlarmError(Exception):
    """Numbers that cannot be computed with were met where the host may be asked: the attempt is over."""


@dataclass(frozen=True)
class Sketch:
    """Inner products of n rows (and a few anchors) about a centre, in which any distance is n x n work.

    A point is written `v = centre + sum_i c_i (p_i - centre)` with one coefficient for each row and anchor, so that
    `|x_i - v|^2 = G_ii - 2 (G c)_i + c^T G c` and d never appears.

    Args:
        gram: (n+a, n+a) float64: inner products about the centre, rows first, then the anchors.
        spread: () float64: V, the sum over coordinates of MAD^2.
        n: how many rows there are; broken ones are not among them.
        f: how many of them (of their votes) may be Byzantine: the f in force.
        anchors: names of the points besides the rows that the rule measures from, such as the origin or the last
            aggregate.
        rounding: relative rounding of the Gram entries.
        blur: what rounding alone may make the squared distance of two mixed rows that coincide.
        unit: what a length of 1 is here, where rows were scaled: parameters that are lengths are multiplied by it.
        votes: (n,) int64: row i counts as so many equal rows, and f of all these may be Byzantine. None: one each.
        total: all votes; n where there are none.
        scaled: (n+a, n+a) float64: the same with every coordinate in units of its own spread, where the rule asked for
            it.

    Example:
        >>> x = torch.tensor([[0.0], [1.0], [9.0]], dtype=torch.float64) - 1.0  # about their median
        >>> sketch = Sketch(x @ x.T, spread=torch.tensor(1.0), n=3, f=1)
        >>> sketch.squared_distances(sketch.centre()).tolist(), sketch.pairwise()[0].tolist()
        ([1.0, 0.0, 64.0], [0.0, 1.0, 81.0])
    """

    gram: Tensor
    spread: Tensor
    n: int
    f: int
    anchors: tuple[str, ...] = ()
    rounding: float = 0.0
    blur: Tensor | float = 0.0
    unit: float = 1.0
    votes: Tensor | None = None
    total: int = 0
    scaled: Tensor | None = None

    def __post_init__(self) -> None:
        if self.votes is None:
            object.__setattr__(self, "total", self.n)

    def count(self, x: Tensor) -> Tensor:
        """x (n,) times each row's votes."""
        return x if self.votes is None else x * self.votes

    def voting(self, x: Tensor) -> Tensor:
        """x (n,), infinite for a row without votes."""
        return x if self.votes is None else x.where(self.votes > 0, torch.inf)

    @property
    def vote(self) -> float:
        """The rows that a vote stands for, so that all of them are n."""
        return self.n / self.total

    def centre(self) -> Tensor:
        """Coefficients (n+a,) of the centre itself: the median, where the rule asked for it."""
        return torch.zeros(self.gram.shape[0], dtype=torch.float64, device=self.gram.device)

    def at(self, anchor: str) -> Tensor:
        """Coefficients (n+a,) of an anchor."""
        c = self.centre()
        c.narrow(0, self.n + self.anchors.index(anchor), 1).fill_(1)  # assigning a number would copy it from the host
        return c

    def on_rows(self, weights: Tensor) -> Tensor:
        """Coefficients (n+a,) from weights (n,) on the rows alone."""
        return torch.nn.functional.pad(weights, (0, len(self.gram) - self.n))

    def squared_norm(self, c: Tensor) -> Tensor:
        """|v - centre|^2 (), for the point with coefficients c (n+a,)."""
        return (c @ self.gram @ c).clamp(min=0)

    def squared_distances(self, c: Tensor) -> Tensor:
        """|x_i - v|^2 (n,) of every row."""
        product = self.gram @ c
        return (self.gram.diagonal() - 2 * product + c @ product)[: self.n].clamp(min=0)

    def slack(self, c: Tensor) -> Tensor:
        """How far squared distances (n,) may be off by rounding: rows that coincide must not differ by it."""
        lengths = self.gram.diagonal().clamp(min=0).sqrt()
        return self.rounding * (lengths[: self.n] + c.abs() @ lengths).square() + self.blur

    def pairwise(self) -> Tensor:
        """|x_i - x_j|^2 (n, n) between rows."""
        gram = self.gram[: self.n, : self.n]
        length = gram.diagonal()
        return (length[:, None] + length[None, :] - 2 * gram).clamp(min=0)

    def company(self) -> Tensor:
        """(n, n): the votes of each row among the total-f nearest to row i, its own first. Ties: the lower index."""
        assert self.votes is not None
        itself = torch.eye(self.n, dtype=torch.bool, device=self.gram.device)
        order = self.pairwise().masked_fill(itself, -1).sort(dim=1, stable=True).indices
        return torch.zeros_like(order).scatter(1, order, self.first_votes(order, self.total - self.f))

    def first_votes(self, order: Tensor, most: int) -> Tensor:
        """How many votes the rows of an order (..., n) give until there are `most`."""
        assert self.votes is not None
        ends = self.votes[order].cumsum(dim=-1)
        return ends.clamp(max=most) - (ends - self.votes[order]).clamp(max=most)

    def sum_nearest(self) -> Tensor:
        """For each row the sum (n,) of squared distances to its n-f nearest, itself included."""
        if (sums := kernels.sum_nearest(self.gram, self.n, self.n - self.f)) is not None:
            return sums
        # Behind a pre-aggregator the matrix is symmetric only up to rounding, and ties must not be settled by that.
        even = replace(self, gram=torch.maximum(self.gram, self.gram.T))
        return even.neighbours()[0].sum(dim=1)

    def neighbours(self) -> tuple[Tensor, Tensor]:
        """For each row its n-f nearest, itself first: squared distances and indices (n, n-f). Ties: the lower index."""
        if (fused := kernels.neighbours(self.gram, self.n, self.n - self.f)) is not None:
            return fused
        itself = torch.eye(self.n, dtype=torch.bool, device=self.gram.device)
        distances = self.pairwise().masked_fill(itself, -1)
        nearest = distances.sort(dim=1, stable=True)
        count = self.n - self.f
        return nearest.values[:, :count].clamp(min=0), nearest.indices[:, :count]

    def nearest_means(self) -> Tensor:
        """(n, n+a): the matrix that makes each row the mean of its n-f nearest, itself included."""
        if self.votes is not None:
            means = self.company().double() / (self.total - self.f)
            return torch.nn.functional.pad(means, (0, len(self.gram) - self.n))
        if (fused := kernels.nearest_means(self.gram, self.n, self.n - self.f)) is not None:
            return fused
        _, nearest = self.neighbours()
        return self.gram.new_zeros(self.n, len(self.gram)).scatter(1, nearest, 1 / nearest.shape[1])


class Gathered(NamedTuple):
    """What a sketch is made of: sums over the leaves."""

    medians: list[Tensor]
    """Leaf by leaf."""
    spread: Tensor
    """() V"""
    gram: Tensor
    """(m+a, m+a)"""
    square: Tensor | None
    """() the squared length of the median, for mixed rows only."""
    coarse: torch.dtype
    """The coarsest dtype that was computed in."""
    columns: float
    """How many columns the sums are over; where ranks share them, those of this rank."""


def gather(
    leaves: Iterable[Rows],
    anchors: Sequence[Sequence[Tensor] | None],
    compute: Callable[[Rows], torch.dtype],
    mix: Tensor | None = None,
    votes: Tensor | None = None,
    spares: Sequence[Tensor] = (),
    floor: Tensor | None = None,
) -> Gathered:
    """Pass over the leaves. Medians may lie where the spares lay. With a `floor` the Gram matrix is in scaled units."""
    medians, spreads, grams, squares = [], [], [], []
    coarse, columns = torch.float64, 0
    for leaf, rows in enumerate(leaves):
        dtype = compute(rows)
        median, spread, gram, square = kernels.sketch(
            rows,
            mix=None if mix is None else mix.contiguous(),
            anchors=[None if point is None else point[leaf] for point in anchors],
            votes=votes,
            compute=dtype,
            spare=spares[leaf] if spares else None,
            floor=floor,
        )
        medians.append(median)
        columns += len(median)
        spreads.append(spread)
        grams.append(gram)
        squares += [] if square is None else [square]
        coarse = dtype if dtype == torch.float32 else coarse
    square = sum(squares[1:], squares[0]) if squares else None
    return Gathered(medians, sum(spreads[1:], spreads[0]), sum(grams[1:], grams[0]), square, coarse, columns)


def drop_origins(c: Tensor, anchors: Sequence[object | None], rest: bool) -> Tensor:
    """Coefficients on rows and those anchors that are not the origin; with `rest`, what is left up to one at the end.

    What lies at the origin adds nothing, but has its part of the sum.
    """
    named = [k for k, point in enumerate(anchors) if point is not None]
    if len(named) == len(anchors):
        return c
    n = len(c) - len(anchors)
    return torch.cat([c[:n], *(c[n + k][None] for k in named), *([1 - c.sum()[None]] if rest else [])])


def leave(mix: Tensor, squared: Tensor, votes: Tensor | None = None) -> Tensor:
    """What mixing (m, n) leaves () of the middle of the rows' squared distances (n,) from their median.

    A mean with shares w of independent rows has sum w^2 of their variance. The middle one is an honest row's, or no
    larger than one.

    >>> leave(torch.full((4, 2), 0.5), torch.tensor([4.0, 8.0]))
    tensor(3.)
    """
    return mix.square().sum() * (middle(squared, votes) / len(mix))


def middle(x: Tensor, votes: Tensor | None = None) -> Tensor:
    """The median () of x (n,), each counted as often as it has votes; of an even number the midpoint."""
    if votes is not None:
        return middle_vote(x[:, None], votes)[0]
    n = len(x)
    return x.sort().values[(n - 1) // 2 : n // 2 + 1].mean()


def extend(matrix: Tensor) -> Tensor:
    """A matrix (m, n) with one more row and column, in which one more point stays as it is."""
    wider = torch.nn.functional.pad(matrix, (0, 1, 0, 1))
    wider[-1, -1].fill_(1)
    return wider
