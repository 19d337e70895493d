"""Figure 1: where Huber's and TQ's iterates end in the plane, nine of nineteen points being outliers."""

from __future__ import annotations

import torch
from torch import Tensor

from robagg.paper.claim import Finding
from robagg.paper.walk import Computation, Computed, follow
from robagg.rules import TQ, Huber

N, F, ITERATIONS = 19, 9, 100
RULES = {"Huber": Huber(f=F), "TQ": TQ(f=F)}
STARTS = {"the median": False, "the mean of all points": True}
ON = 1e-6
"""Nearer than this to the honest mean an iterate is on it."""


def draw_points(seed: int) -> Tensor:
    """Ten honest points from N(0, 1) and nine outliers around (10, 10) with variance 0.1: (19, 2)."""
    source = torch.Generator().manual_seed(seed)
    noise = torch.randn(N, 2, generator=source, dtype=torch.float64)
    return torch.cat([noise[: N - F], 10 + 0.1**0.5 * noise[N - F :]])


def compute(draws: int) -> Computed:
    """How often each rule ends on the honest mean, from each start, and the paths of the first draw."""
    ended = {(rule, start): 0 for rule in RULES for start in STARTS}
    away = dict.fromkeys(ended, 0.0)
    paths: dict[tuple[str, str], Tensor] = {}
    for seed in range(draws):
        x = draw_points(seed)
        mean = x[: N - F].mean(0)
        for rule, start in ended:
            path = follow(RULES[rule], x, F, from_mean=STARTS[start], iterations=ITERATIONS)
            distance = float((path[-1] - mean).norm())
            ended[rule, start] += distance < ON
            away[rule, start] += distance / draws
            if seed == 0:
                paths[rule, start] = path
    lines = [
        [rule, start, f"{100 * count / draws:.1f} %", f"{away[rule, start]:.3f}"]
        for (rule, start), count in ended.items()
    ]
    findings = [
        _judge("TQ ends on the honest mean from the median, always", ended["TQ", "the median"], draws, 1.0),
        _judge("TQ ends on it from the mean of all points, in 95 %", ended["TQ", "the mean of all points"], draws, 0.9),
        *(
            _judge(f"Huber never ends on it from {start}", draws - ended["Huber", start], draws, 1.0)
            for start in STARTS
        ),
    ]
    head = ("rule", "start", f"ends on the honest mean ({draws} draws)", "mean distance to it")
    return Computed(head, lines, findings, {"points": draw_points(0), "f": F, "paths": paths})


def _judge(claim: str, count: int, draws: int, share: float) -> Finding:
    return Finding(claim, count >= share * draws, f"{count} of {draws}")


EXPERIMENT = Computation(
    "fig1", "Iterates of Huber and TQ in the plane, n=19, f=9, 100 iterations, tau by MAD", compute, 500, 60
)
