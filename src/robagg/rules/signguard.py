"""SignGuard: rows of odd length or with odd counts of signs are left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from robagg._core.checks import read_positive
from robagg._core.outcome import Outcome
from robagg._core.passes import Passes
from robagg._core.rule import Rule
from robagg._core.sketch import Sketch, middle
from robagg._core.tolerance import F
from robagg.kernels.reference import mixed, tile, tiles
from robagg.rules.meamed import check_whole

STEPS = 30
"""Of the mean shift; most sets of points stand still after five."""
GRAIN = 1e-9
"""Shares of signs nearer than this are equal: only rounding parts them."""


@dataclass(frozen=True)
class SignGuard(Rule):
    """The mean of the rows of usual length in the largest cluster by counts of signs, clipped to the median length M.

        v = 1/|S| sum_(i in S) min(1, M/|x_i|) x_i,    S: in the largest cluster, and lower M <= |x_i| <= upper M

    A row's point is its shares of positive, zero and negative coordinates. The points walk to the mean of those within
    the bandwidth b, 30 times; the largest cluster are those that end within b of the one with most points about it
    (ties: the lower index). b is the mean distance of a point to its n/2-th nearest. The paper takes a random tenth of
    the coordinates; here all of them count, and nothing is drawn. Where no row passes both, those of such a length are
    taken, and where there are none, all.

    Against attacks that turn signs or lengths. It measures from the origin, so adding a constant vector to all rows
    does not just shift the result.

    Args:
        f: how many rows may be Byzantine; used only to judge how many broken rows can be borne.
        lower: rows shorter than so many median lengths are left out.
        upper: rows longer than so many are left out.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 2.0], [2.0, 1.0, 2.0], [2.0, 2.0, 1.0], [-2.0, -2.0, -1.0], [9.0, 9.0, 9.0]])
        >>> SignGuard(f=2)(x)
        tensor([1.6667, 1.6667, 1.6667])

    References:
        Xu, Huang, Song, Lan: Byzantine-robust Federated Learning through Collaborative Malicious Gradient Filtering,
        ICDCS 2022, arXiv:2109.05872. Mean shift: Comaniciu, Meer, IEEE TPAMI 2002.
    """

    f: F = None
    lower: float = 0.1
    upper: float = 3.0
    takes_weights: ClassVar[bool] = True
    anchors: ClassVar[tuple[str, ...]] = ("origin",)

    def __post_init__(self) -> None:
        super().__post_init__()
        read_positive(self, "lower")
        read_positive(self, "upper")

    def solve(self, passes: Passes, f: int, shares: Tensor | None) -> Outcome:
        check_whole(passes)
        sketch = passes.distances(f)
        origin = sketch.at("origin")
        squared, slack = sketch.squared_distances(origin), sketch.slack(origin)
        lengths = squared.maximum(slack).sqrt()
        usual = middle(squared.sqrt(), sketch.votes)
        votes = sketch.count(torch.ones_like(squared))
        passing = (squared <= (self.upper * usual).square() + slack) & (votes > 0)
        passing &= squared >= (self.lower * usual).square() - slack
        both = passing & find_cluster(count_signs(passes), sketch)
        share = votes * torch.where(both.any(), both, passing | ~passing.any())
        clipped = (usual / lengths.clamp(min=torch.finfo(lengths.dtype).tiny)).clamp(max=1)
        scale = share / share.sum() * torch.where(usual > 0, clipped, 1.0)
        c = sketch.on_rows(scale) + (1 - scale.sum()) * origin  # what clipping leaves of one is the origin's
        return Outcome(passes.combine(c), passes.through(c)[: passes.sent], passes.alarm, chosen=True)


def count_signs(passes: Passes) -> Tensor:
    """(n, 3) float64: the shares of positive, zero and negative coordinates in each row."""
    mix = None if passes.matrix is None else passes.matrix[: passes.n, : passes.sent].contiguous()
    counts, d = torch.zeros(passes.n, 3, dtype=torch.float64, device=passes.device), 0
    for rows in passes.leaves:
        d += len(rows[0])
        for columns in tiles(len(rows[0]), passes.device, passes.sent):
            x = tile(rows, columns, passes.compute(rows))
            x = x if mix is None else mixed(mix, x)
            counts += torch.stack([(x > 0).sum(1), (x == 0).sum(1), (x < 0).sum(1)], dim=1)
    return counts / max(d, 1)


def find_cluster(points: Tensor, sketch: Sketch) -> Tensor:
    """(n,) which rows are in the largest cluster of the points (n, k), each counted as often as it has votes."""
    n, total = sketch.n, sketch.total
    votes = sketch.count(torch.ones(n, dtype=torch.float64, device=points.device))
    gaps, order = measure_gaps(points, points).sort(dim=1, stable=True)
    # The distance to the nearest half of all votes, itself included.
    least = (votes[order].cumsum(dim=1) >= max(total // 2, 1)).double().argmax(dim=1)
    width = (gaps.gather(1, least[:, None])[:, 0] @ votes) / total + GRAIN
    at = points
    for _ in range(STEPS):
        near = (measure_gaps(at, points) <= width).double() * votes
        at = near @ points / near.sum(dim=1, keepdim=True)
    company = (measure_gaps(at, points) <= width).double() @ votes
    index = torch.arange(n, device=points.device)
    first = torch.where((company == company.max()) & (votes > 0), index, n - 1).min()
    return measure_gaps(at, at.index_select(0, first.view(1)))[:, 0] <= width


def measure_gaps(a: Tensor, b: Tensor) -> Tensor:
    """(n, m) distances of points (n, k) from others (m, k)."""
    return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")  # equal points are at 0
