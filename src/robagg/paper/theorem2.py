"""Theorem 2: how far Huber's fixed point is from the honest mean, measured and by the formula."""

from __future__ import annotations

import torch
from torch import Tensor

from robagg.paper.claim import Finding
from robagg.paper.example1 import pull_huber
from robagg.paper.tq_true import TQTrue, mean_of_honest
from robagg.paper.walk import Computation, Computed, sketch_rows, trace_points, walk
from robagg.theory import bias_condition, huber_bias

N, D, FAR, ITERATIONS = 60, 10, 1e4, 3000
COUNTS = (1, 3, 6, 9, 12, 15, 18, 21, 24, 27)


def draw_rows(f: int, seed: int) -> Tensor:
    """Honest rows from N(0, 1) and liars that stand together far off: (n, d)."""
    x = torch.randn(N, D, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    x[N - f :] = torch.full((D,), FAR, dtype=torch.float64)
    return x


def compute(draws: int) -> Computed:
    lines, inside, fine = [], 0, 0
    curve: list[tuple[float, float, float, float]] = []
    for f in COUNTS:
        x = draw_rows(f, 0)
        h, delta = N - f, f / N
        mean = x[:h].mean(0)
        away = (x[:h] - mean).norm(dim=1)
        variance = float(away.square().mean())
        median, sketch = sketch_rows(x, f)
        start = mean_of_honest(sketch)
        rest = trace_points(x, median, walk(pull_huber, sketch, start, ITERATIONS)[-1:])[0]
        still = trace_points(x, median, walk(TQTrue(f=f).pull, sketch, start, ITERATIONS)[-1:])[0]
        directions = torch.nn.functional.normalize(x[h:] - rest, dim=1)
        s = min(1.0, float(directions.mean(0).norm()))
        measured = float((rest - mean).square().sum()) / variance
        formula = huber_bias(delta, s) if delta * (1 + s**2) < 1 else float("inf")
        sure = delta <= bias_condition(s, float(away.max()), variance)
        printed = delta <= bias_condition(s, float(away.max()), variance, printed=True)
        inside += sure
        fine += sure and abs(measured - formula) <= 1e-3 * formula
        tq = float((still - mean).square().sum()) / variance
        yes = {True: "yes", False: "no"}
        lines.append(
            [
                f"{f}",
                f"{delta:.3f}",
                f"{s:.3f}",
                f"{measured:.4f}",
                f"{formula:.4f}",
                yes[sure],
                yes[printed],
                f"{tq:.4f}",
            ]
        )
        curve.append((delta, measured, formula, tq))
    finding = Finding("within the condition Huber's bias is the formula's", fine == inside, f"{fine} of {inside}")
    head = ("f", "delta", "s", "bias/Var", "formula", "condition, k=G^2/Var", "as printed", "TQ's bias/Var")
    return Computed(head, lines, [finding], {"bias": curve})


EXPERIMENT = Computation("theorem2", "Theorem 2: Huber's squared bias, n=60, d=10, liars far off together", compute)
