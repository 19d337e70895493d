"""A search for the worst stack of a rule: the one on which its (f, kappa) inequality needs the largest kappa."""

from __future__ import annotations

import time

import torch
from torch import Tensor

from robagg import theory
from robagg._core.checks import is_whole
from robagg._core.iterative import IterativeRule
from robagg._core.rule import Rule, parse
from robagg.rules import TQ, Huber
from robagg.worst_case.evaluate import Evaluate, check_walk, evaluate_batch, evaluate_each, walk
from robagg.worst_case.found import Growth, WorstCase
from robagg.worst_case.honest import HONEST, draw_honest
from robagg.worst_case.placed import Placed, find_worst_positions
from robagg.worst_case.search import MOST, Shape, Watch, search

__all__ = [
    "HONEST",
    "Growth",
    "Placed",
    "WorstCase",
    "draw_honest",
    "find_worst_case",
    "find_worst_positions",
    "walk",
]

REACH = 100.0
"""How far a far start (or the origin, for rules that measure from it) may be, in roots of the honest Var."""
TENFOLD = 5
LAST = 16
"""How many of the worst stacks are evaluated again by the public call."""


def find_worst_case(
    rule: str | Rule,
    n: int,
    f: int,
    d: int = 2,
    *,
    budget: int = 200_000,
    seed: int = 0,
    tau: str = "estimated",
    start: str = "median",
    watch: Watch | None = None,
) -> WorstCase:
    """Search for the stack on which a rule is farthest from the honest mean, in roots of the honest variance.

    It maximises |R(X) - xbar|^2 / ((1/h) sum over the honest |x_i - xbar|^2) over honest and Byzantine rows alike:
    random starts, then steps on rows. The honest rows have Var 1 while it searches; afterwards the distance of the
    Byzantine rows, how close the honest rows lie, and the distance of all rows from the origin are carried on tenfold
    to see what has no bound.
    What is random in a rule (Bucketing) is drawn alike on every stack, and the attacker knows it.

    Args:
        rule: a rule or a pipeline, or its text; parts that name no f of their own get this one.
        n: rows.
        f: how many of them are Byzantine, 1 <= f < n/2.
        d: length of a row.
        budget: how many stacks to look at.
        seed: of the search.
        tau: "true" takes TQ's and Huber's tau from the honest mean and variance, as the paper's theorems do.
        start: "far" lets the search choose the start of a walking rule too, up to 100 roots of Var away, and gives the
            walk the steps that Theorem 3 asks for from there.
        watch: is called as the search goes on, with how many stacks were looked at and the worst ratio so far.

    Example:
        >>> find_worst_case("cm", 5, 1, budget=3000).verdict
        'the worst found is within the bound'
        >>> find_worst_case("mean", 5, 1, budget=3000).broken
        True
    """
    began = time.perf_counter()
    chain = parse(rule, f=f)
    _check(chain, n, f, d, budget, tau, start)
    h = n - f
    far, steps = start == "far", None
    if far and isinstance(chain, IterativeRule):
        steps = max(chain.iterations, theory.steps_needed(f / n, REACH, 1.0))
    known = far or tau == "true"
    quick, sure = evaluate_batch(chain, n, seed), evaluate_each(chain, seed)
    from_origin = not known and not _follows_shifts(quick, n, d, seed)
    shape = Shape(h, f, d, REACH if far or from_origin else 0.0)

    def aggregate(points: Tensor, evaluate: Evaluate) -> Tensor:
        x = points[:, :n]
        if known and isinstance(chain, IterativeRule):
            return walk(chain, x, h, start=points[:, n] if far else None, tau=tau, steps=steps)
        if from_origin:  # the point more is where the origin is
            return evaluate(x - points[:, n:]) + points[:, n]
        return evaluate(x)

    def measure(points: Tensor, evaluate: Evaluate) -> Tensor:
        centre = points[:, :h].mean(dim=1)
        variance = (points[:, :h] - centre[:, None]).square().sum(dim=(1, 2)) / h
        return (aggregate(points, evaluate) - centre).square().sum(dim=1) / variance

    generator = torch.Generator().manual_seed(seed)
    found, _, used = search(lambda points: measure(points, quick), shape, budget, generator, watch)
    worst = found[:LAST]
    # A row on the very edge of tau may fall on either side of it: what counts is what the public rule says.
    ratios = measure(worst, sure)
    best = worst[ratios.argmax()][None]
    origin = best[0, n] if from_origin else torch.zeros(d, dtype=torch.float64)
    return WorstCase(
        rule=str(chain),
        n=n,
        f=f,
        d=d,
        tau=tau if isinstance(chain.core, TQ | Huber) else "",
        start=start if known or getattr(chain.core, "needs_median", False) else "own",
        ratio=float(ratios.max()),
        bound=theory.kappa(chain, n, f),
        stack=best[0, :n] - origin,
        honest=tuple(range(h)),
        value=aggregate(best, sure)[0] - origin,
        growth=tuple(_carry_on(best, shape, lambda points: measure(points, sure), from_origin)),
        evaluations=used + LAST,
        seed=seed,
        seconds=time.perf_counter() - began,
        steps=steps,
        start_point=best[0, n] if far else None,
    )


def _carry_on(points: Tensor, shape: Shape, measure: Evaluate, from_origin: bool) -> list[Growth]:
    """The ratios as the worst stack is carried on in each way that could leave every bound behind."""
    h, n = shape.h, shape.h + shape.f
    times = 10.0 ** torch.arange(TENFOLD, dtype=torch.float64)[:, None, None]
    byzantine, honest, more = list(range(h, n)), list(range(h)), list(range(n, shape.rows))
    moves = {
        "the distance of the Byzantine rows": (byzantine, times),
        # A far start comes closer with the honest rows: the steps it was given are for its distance in roots of Var.
        "how close the honest rows lie": (honest if from_origin else honest + more, 1 / times),
    }
    if from_origin:
        moves["the distance of all rows from the origin"] = (more, times)
    growth = []
    for along, (rows, factor) in moves.items():
        carried = points.repeat(TENFOLD, 1, 1)
        carried[:, rows] = carried[:, rows] * factor
        growth.append(Growth(along, tuple(measure(carried).tolist())))
    return growth


def _follows_shifts(evaluate: Evaluate, n: int, d: int, seed: int) -> bool:
    """Whether adding a vector to all rows adds it to the value: else it matters where the origin is."""
    x = torch.randn(8, n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.allclose(evaluate(x + 20.0), evaluate(x) + 20.0, rtol=1e-7)


def _check(chain: Rule, n: int, f: int, d: int, budget: int, tau: str, start: str) -> None:
    for name, value, least in (("n", n, 3), ("f", f, 1), ("d", d, 1), ("budget", budget, 1)):
        if not is_whole(value):
            raise TypeError(f"{name} must be a whole number, got {value!r}")
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")
    if n * d > MOST:
        raise ValueError(f"n times d must be at most {MOST:,} in a search, got n={n:,}, d={d:,}")
    if n < 2 * f + 1:
        raise ValueError(f"n must be at least 2f+1, got n={n}, f={f}")
    if start not in ("median", "far"):
        raise ValueError(f'start must be "median" or "far", got {start!r}')
    if start == "far" or tau != "estimated":
        check_walk(chain, tau)
    for stage in chain.stages:
        stage.resolve_f(n)
