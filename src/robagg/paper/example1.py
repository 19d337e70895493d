"""Example 1: two groups of honest clients; from their mean Huber moves by delta tau s in one step, TQ not at all."""

from __future__ import annotations

import torch
from torch import Tensor

from robagg._core.outcome import Pull
from robagg._core.sketch import Sketch
from robagg.paper.claim import Finding
from robagg.paper.tq_true import TQTrue, find_true_tau2, mean_of_honest
from robagg.paper.walk import Computation, Computed, sketch_rows, trace_points, walk
from robagg.rules.huber import clip
from robagg.theory import huber_move

N, G, FAR = 20, 1.0, 1000.0


def pull_huber(sketch: Sketch, c: Tensor, squared: Tensor) -> Pull:
    """Huber's pull with the true tau."""
    return clip(sketch, squared, find_true_tau2(sketch, c).sqrt(), sketch.slack(c))


def place_rows(f: int) -> Tensor:
    """Half of the honest rows at G, half at -G, all liars far off at a right angle, so that s is 1: (n, 2)."""
    h = N - f
    x = torch.zeros(N, 2, dtype=torch.float64)
    x[:h, 0] = torch.tensor([G, -G], dtype=torch.float64).repeat(h)[:h]
    x[h:, 1] = FAR
    return x


def compute(draws: int) -> Computed:
    lines, against = [], []
    counts = [f for f in range(2, N // 2) if (N - f) % 2 == 0]
    for f in counts:
        x = place_rows(f)
        median, sketch = sketch_rows(x, f)
        start = mean_of_honest(sketch)
        moves = []
        for pull in (pull_huber, TQTrue(f=f).pull):
            path = trace_points(x, median, walk(pull, sketch, start, 1))
            moves.append(float((path[-1] - path[0]).norm()))
        tau = float(find_true_tau2(sketch, start).sqrt())
        wanted = huber_move(f / N, tau, 1.0)
        lines.append([f"{f}", f"{f / N:.2f}", f"{tau:.4f}", f"{wanted:.4f}", f"{moves[0]:.4f}", f"{moves[1]:.4f}"])
        if abs(moves[0] - wanted) > 1e-6 or moves[1] > 1e-6:
            against.append(f"f={f}")
    claim = "one step from the honest mean: Huber moves by delta tau s, TQ not at all"
    finding = Finding(claim, not against, f"{len(counts) - len(against)} of {len(counts)}")
    return Computed(("f", "delta", "tau", "delta tau s", "Huber moves", "TQ moves"), lines, [finding])


EXPERIMENT = Computation("example1", "Example 1: one step from the honest mean, n=20, G=1", compute)
