"""A search for the worst positions of Byzantine rows among honest rows that are given, in any dimension."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from robagg._core.checks import is_whole
from robagg._core.rule import Rule, parse
from robagg.worst_case.evaluate import evaluate_batch
from robagg.worst_case.families import FAMILIES, Draw, place
from robagg.worst_case.found import Growth
from robagg.worst_case.honest import draw_honest
from robagg.worst_case.search import MOST, Watch

STARTS = 0.15
"""The share of the budget that goes to placing rows, before they are moved."""
CHUNK = 256
CHILDREN = 8
GENERATIONS = ((0.0, 32), (0.35, 12), (0.7, 4))
"""How many placements are moved on, from which share of the budget."""
TENFOLD = 4


@dataclass(frozen=True)
class Placed:
    """The worst positions that a search found. Its ratio is a lower bound of the worst: it proves nothing.

    Args:
        rule: its text.
        n: how many rows.
        f: how many of them are Byzantine.
        d: how long a row is.
        honest: which kind of honest rows was given.
        ratio: |R(X) - xbar|^2 over (1/h) sum over the honest |x_i - xbar|^2.
        family: where the search began that ended there.
        growth: how the ratio grows as the Byzantine rows are carried on.
        stack: (n, d) float64, the honest rows first, of mean 0 and variance 1.
        evaluations: how many stacks were tried.
        seed: of the search.
        seconds: how long it took.
    """

    rule: str
    n: int
    f: int
    d: int
    honest: str
    ratio: float
    family: str
    growth: tuple[Growth, ...]
    stack: Tensor
    evaluations: int
    seed: int
    seconds: float

    @property
    def grows(self) -> Growth | None:
        """With what the ratio grows without bound, if it does."""
        return next((growth for growth in self.growth if growth.unbounded), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        entry = {name: getattr(self, name) for name in ("rule", "n", "f", "d", "honest", "ratio", "family")}
        growth = [{"along": one.along, "ratios": list(one.ratios)} for one in self.growth]
        return {**entry, "growth": growth, "evaluations": self.evaluations, "seed": self.seed, "seconds": self.seconds}


def find_worst_positions(
    rule: str | Rule,
    honest: str = "gaussian",
    n: int = 20,
    f: int = 6,
    d: int = 40,
    *,
    budget: int = 10_000,
    seed: int = 0,
    watch: Watch | None = None,
) -> Placed:
    """Search for the positions of f Byzantine rows that move a rule farthest from the mean of honest rows.

    It maximises |R(X) - xbar|^2 in honest variances: starts from every family, then moves that are kept where they hurt
    more: all rows or some, apart or together, along honest axes, out or in, and on in the way that helped before. Where
    it ends the Byzantine rows, and each of them alone, are carried out tenfold to see what has no bound.

    Args:
        rule: a rule or a pipeline, or its text; parts that name no f of their own get this one.
        honest: gaussian, skewed, clustered, quarter or half (see `draw_honest`).
        n: rows.
        f: how many of them are Byzantine, 1 <= f < n/2.
        d: length of a row.
        budget: how many stacks to look at.
        seed: of the search; the honest rows are the same for all seeds.
        watch: is called as the search goes on.

    Example:
        >>> find_worst_positions("mean", n=8, f=2, d=5, budget=500).grows.along
        'the distance of the Byzantine rows'
    """
    began = time.perf_counter()
    for name, value, least in (("n", n, 3), ("f", f, 1), ("d", d, 2), ("budget", budget, len(FAMILIES))):
        if not is_whole(value) or value < least:
            raise ValueError(f"{name} must be a whole number from {least} on, got {value!r}")
    if n * d > MOST:
        raise ValueError(f"n times d must be at most {MOST:,} in a search, got n={n:,}, d={d:,}")
    if n < 2 * f + 1:
        raise ValueError(f"n must be at least 2f+1, got n={n}, f={f}")
    chain = parse(rule, f=f)
    generator = torch.Generator().manual_seed(seed)
    rows = draw_honest(honest, n - f, d)
    aggregate = evaluate_batch(chain, n, seed)

    def measure(placed: Tensor) -> Tensor:
        stacks = torch.cat([rows.expand(len(placed), *rows.shape), placed], dim=1)
        return aggregate(stacks).square().sum(dim=1).nan_to_num(torch.inf)

    axes: Tensor = torch.linalg.svd(rows, full_matrices=False)[2][: n - f - 1]
    draw = Draw(rows, f, generator, axes)
    placed, scores, families, used = _start(measure, draw, max(len(FAMILIES), int(STARTS * budget)), budget)
    sizes, last = torch.full((len(placed), 1, 1), 0.3, dtype=torch.float64), torch.zeros_like(placed)
    while used < budget:
        count = [many for share, many in GENERATIONS if used >= share * budget][-1]
        if len(placed) > count:
            best = scores.argsort(descending=True)[:count]
            placed, scores, sizes, last = placed[best], scores[best], sizes[best], last[best]
            families = [families[i] for i in best.tolist()]
        steps = torch.cat([_move(placed, last, sizes, draw) for _ in range(CHILDREN)])
        found, which = measure(placed.repeat(CHILDREN, 1, 1) + steps).view(CHILDREN, -1).max(dim=0)
        step = steps.view(CHILDREN, *placed.shape)[which, torch.arange(len(placed))]
        better = (found > scores)[:, None, None]
        placed, last = torch.where(better, placed + step, placed), torch.where(better, step, last)
        scores = torch.maximum(found, scores)
        sizes = (sizes * torch.where(better, 1.15, 0.93)).clamp(1e-3, 1.0)
        used += len(steps)
        if watch is not None:
            watch(min(used, budget), float(scores.max()))
    at = int(scores.argmax())
    return Placed(
        rule=str(chain),
        n=n,
        f=f,
        d=d,
        honest=honest,
        ratio=float(scores[at]),
        family=families[at],
        growth=tuple(_carry_out(placed[at], measure)),
        stack=torch.cat([rows, placed[at]]),
        evaluations=used,
        seed=seed,
        seconds=time.perf_counter() - began,
    )


def _start(
    measure: Callable[[Tensor], Tensor], draw: Draw, count: int, budget: int
) -> tuple[Tensor, Tensor, list[str], int]:
    """The worst placements of each family, as many of each as there is room for."""
    names = list(FAMILIES)
    families = [names[i % len(names)] for i in range(min(count, budget))]
    placed = torch.stack([place(draw, family) for family in families])
    scores = torch.cat([measure(placed[i : i + CHUNK]) for i in range(0, len(placed), CHUNK)])
    room, kept, taken = -(-GENERATIONS[0][1] // len(names)), [], dict.fromkeys(names, 0)
    for i in scores.argsort(descending=True).tolist():
        taken[families[i]] += 1
        if taken[families[i]] <= room:
            kept.append(i)
    return placed[kept], scores[kept], [families[i] for i in kept], len(families)


def _move(placed: Tensor, last: Tensor, sizes: Tensor, draw: Draw) -> Tensor:
    """A step (m, f, d) for each placement: one of eight kinds, of a size of its own."""
    m, f, d = placed.shape
    size = sizes * 10 ** (-1.5 * torch.rand(m, 1, 1, generator=draw.generator, dtype=torch.float64))
    each, common = draw.normal(m, f, d) * d**-0.5, draw.normal(m, 1, d) * d**-0.5
    some = (torch.rand(m, f, 1, generator=draw.generator) < 0.3).double()
    factor, apart = draw.normal(m, 1, 1), draw.normal(m, f, 1)
    axis = draw.axes[torch.randint(len(draw.axes), (m,), generator=draw.generator)][:, None]
    centre = placed.mean(dim=1, keepdim=True)
    steps = torch.stack(
        [
            2 * each,
            3 * each * some,
            (2 * common).expand_as(each),
            2 * factor * placed,
            2 * factor * (placed - centre),
            (2 * factor * axis).expand_as(each),
            apart * axis,
            last / size * factor.abs(),
        ]
    )
    kind = torch.randint(len(steps), (m,), generator=draw.generator)
    return size * steps[kind, torch.arange(m)]


def _carry_out(placed: Tensor, measure: Callable[[Tensor], Tensor]) -> list[Growth]:
    times = 10.0 ** torch.arange(TENFOLD, dtype=torch.float64)[:, None, None]
    growth = [Growth("the distance of the Byzantine rows", tuple(measure(placed * times).tolist()))]
    for i in range(len(placed)):
        carried = placed.repeat(TENFOLD, 1, 1)
        carried[:, i] *= times[:, 0]
        growth.append(Growth("the distance of one Byzantine row", tuple(measure(carried).tolist())))
    return growth
