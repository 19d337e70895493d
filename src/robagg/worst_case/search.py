"""The search for the worst stack: random starts of many shapes, then steps on rows that are kept where they hurt more.

Rules such as TQ jump where a row crosses tau, so the steps ask for values only and not for slopes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

FAR = 1e3
"""How far from the honest mean, in roots of Var, the search lets a Byzantine row stand."""
CHAINS = 256
SHARE_OF_STARTS = 0.25

MOST = 100_000
"""The most numbers of a stack, of which hundreds are moved at once."""
Watch = Callable[[int, float], None]
"""Called with how many stacks were looked at and the worst ratio so far."""
Score = Callable[[Tensor], Tensor]
"""Points (B, n+a, d), scaled to honest mean 0 and Var 1, to the squared error (B,)."""


@dataclass(frozen=True)
class Shape:
    """What the search moves: h honest rows, f Byzantine ones, then at most one point more (a start or an origin)."""

    h: int
    f: int
    d: int
    reach: float = 0.0
    """How far from the honest mean the point more may be; 0: there is none."""

    @property
    def rows(self) -> int:
        return self.h + self.f + (self.reach > 0)


def search(
    score: Score, shape: Shape, budget: int, generator: torch.Generator, watch: Watch | None = None
) -> tuple[Tensor, Tensor, int]:
    """The points (CHAINS, rows, d) of the worst chains, worst first, their scores, and how many were looked at."""
    starts = max(CHAINS, int(budget * SHARE_OF_STARTS))
    points, scores = _begin(score, shape, starts, generator, watch)
    used = starts
    while used + CHAINS <= budget:
        done = used / budget
        trial = _normalise(_step(points, shape, done, generator), shape)
        new = _score(score, trial)
        better = new > scores
        points = torch.where(better[:, None, None], trial, points)
        scores = torch.where(better, new, scores)
        used += CHAINS
        if watch is not None:
            watch(used, float(scores.max()))
        # Now and then the worse half goes on from the better half, so that late steps refine what was found.
        if int(used / budget * 12) > int(done * 12):
            order = scores.argsort(descending=True)
            half = CHAINS // 2
            points = points[order[:half]].repeat(2, 1, 1)
            scores = scores[order[:half]].repeat(2)
    order = scores.argsort(descending=True)
    return points[order], scores[order], used


def _begin(
    score: Score, shape: Shape, count: int, generator: torch.Generator, watch: Watch | None
) -> tuple[Tensor, Tensor]:
    used = 0

    points = torch.empty(0, shape.rows, shape.d, dtype=torch.float64)
    scores = torch.empty(0, dtype=torch.float64)
    for size in [CHAINS] * (count // CHAINS) + ([count % CHAINS] if count % CHAINS else []):
        drawn = _normalise(_draw(shape, size, generator), shape)
        points = torch.cat([points, drawn])
        scores = torch.cat([scores, _score(score, drawn)])
        best = scores.argsort(descending=True)[:CHAINS]
        points, scores = points[best], scores[best]
        used += size
        if watch is not None:
            watch(used, float(scores.max()))
    return points, scores


def _score(score: Score, points: Tensor) -> Tensor:
    return score(points).nan_to_num(-1.0, posinf=-1.0)


def _draw(shape: Shape, count: int, generator: torch.Generator) -> Tensor:
    """Stacks (count, rows, d): clouds, groups, heavy tails; Byzantine rows together, apart, or among the honest."""

    def normal(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator, dtype=torch.float64)

    def uniform(*size: int) -> Tensor:
        return torch.rand(*size, generator=generator, dtype=torch.float64)

    h, f, d = shape.h, shape.f, shape.d
    kind = torch.randint(3, (count, 1, 1), generator=generator)
    cloud = normal(count, h, d)
    tails = cloud * normal(count, h, 1).mul(1.5).exp()
    apart = (torch.rand(count, h, 1, generator=generator, dtype=torch.float64) < uniform(count, 1, 1)).double()
    groups = apart * normal(count, 1, d) + cloud * 10 ** (-6 * uniform(count, 1, 1))
    honest = torch.where(kind == 0, cloud, torch.where(kind == 1, tails, groups))
    honest = _normalise(torch.cat([honest, normal(count, shape.rows - h, d)], dim=1), shape)[:, :h]

    way = torch.nn.functional.normalize(normal(count, 1, d), dim=2)
    line = torch.nn.functional.normalize(honest[:, :1], dim=2) * normal(count, 1, 1).sign()
    way = torch.where(uniform(count, 1, 1) < 0.5, way, line)
    distance = 10 ** (-1 + 4 * uniform(count, 1, 1))
    together = way * distance + normal(count, f, d) * 10 ** (-6 * uniform(count, 1, 1))
    scattered = normal(count, f, d) * distance
    opposite = way * distance * normal(count, f, 1).sign()
    choice = torch.randint(h, (count, f), generator=generator)
    among = honest.gather(1, choice[:, :, None].expand(-1, -1, d)) * (0.5 + uniform(count, 1, 1))
    kind = torch.randint(5, (count, 1, 1), generator=generator)
    byzantine = torch.where(kind <= 1, together, torch.where(kind == 2, scattered, opposite))
    parts = [honest, torch.where(kind == 4, among, byzantine)]
    if shape.reach:
        parts.append(way * shape.reach ** uniform(count, 1, 1))
    return torch.cat(parts, dim=1)


def _step(points: Tensor, shape: Shape, done: float, generator: torch.Generator) -> Tensor:
    """One step for each chain: a coordinate, a row, all Byzantine rows moved or stretched, or a row put on another."""
    count, rows, d = points.shape
    h, f = shape.h, shape.f

    def normal(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator, dtype=torch.float64)

    index = torch.arange(rows)
    row = torch.randint(rows, (count, 1), generator=generator)
    chosen = (index == row)[:, :, None].double()
    byzantine = ((index >= h) & (index < h + f)).double()[None, :, None]
    # Steps from coarse to fine, finer as the search goes on, in units of how far out the moved rows are.
    size = 10 ** (-(1 + 4 * done) * torch.rand(count, 1, 1, generator=generator, dtype=torch.float64))
    length = points.square().sum(2, keepdim=True).sqrt() + 0.1
    axis = torch.nn.functional.one_hot(torch.randint(d, (count,), generator=generator), d)[:, None, :].double()
    coordinate = points + chosen * axis * normal(count, 1, 1) * size * length
    whole = points + chosen * normal(count, 1, d) * size * length
    reach = (length * byzantine).sum(1, keepdim=True) / max(f, 1)
    moved = points + byzantine * normal(count, 1, d) * size * reach
    stretched = points * (1 + byzantine * normal(count, 1, 1) * size)
    # Copies go among honest or among Byzantine rows: near-worst stacks have rows that coincide.
    peer = torch.where(row < h, torch.randint(h, (count, 1), generator=generator), _pick(h, f, count, generator))
    peer = torch.where(row < h + f, peer, row)
    copied = torch.where(chosen > 0, points.gather(1, peer[:, :, None].expand(-1, -1, d)), points)
    kind = torch.randint(6, (count, 1, 1), generator=generator)
    result = torch.where(kind <= 1, coordinate, whole)
    for which, candidate in ((3, moved), (4, stretched), (5, copied)):
        result = torch.where(kind == which, candidate, result)
    return result


def _pick(h: int, f: int, count: int, generator: torch.Generator) -> Tensor:
    return h + torch.randint(max(f, 1), (count, 1), generator=generator) if f else torch.zeros(count, 1).long()


def _normalise(points: Tensor, shape: Shape) -> Tensor:
    """Honest mean 0 and Var 1 (stacks whose honest rows coincide become NaN), nothing beyond its reach."""
    h, f = shape.h, shape.f
    points = points - points[:, :h].mean(dim=1, keepdim=True)
    variance = points[:, :h].square().sum(dim=(1, 2), keepdim=True) / h
    points = points / variance.sqrt()
    limit = torch.full((shape.rows, 1), torch.inf, dtype=torch.float64)
    limit[h : h + f] = FAR
    limit[h + f :] = shape.reach
    length = points.square().sum(dim=2, keepdim=True).sqrt()
    return points * (limit / length).clamp(max=1.0)
