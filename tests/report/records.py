"""Records as a lab writes them, without doing the runs."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import torch

from robagg.lab import Run, Store
from robagg.lab.execution import describe_failure
from robagg.lab.lines import write_line
from robagg.lab.run import RESULTS_VERSION
from robagg.training import Trace

HOSTILE = "<script>window.stolen=1</script>"
ENVIRONMENT = {"robagg": "0.1.0", "python": "3.11.7", "torch": "2.13.0", "device": "cpu", "device_name": "x86_64"}


def make_record(run: Run, *, points: int = 150, diverged: int | None = None) -> dict[str, Any]:
    """A run's record with curves of that many points."""
    draw = random.Random(run.key)
    trace, level = Trace(run.n, run.f), draw.uniform(40, 95)
    for k in range(points):
        weights = torch.tensor([draw.random() * (i < run.n - run.f) for i in range(run.n)], dtype=torch.float64)
        weights /= weights.sum()
        trace.add(
            k * 10, 2.3 * math.exp(-k / 40) + draw.random() / 9, draw.random(), weights, weights < 0.02, 3 - weights
        )
    return {
        "robagg": RESULTS_VERSION,
        "key": run.key,
        "status": "ok",
        "finished": "2026-01-02T03:04:05+00:00",
        "spec": run.describe(),
        "accuracy": level,
        "diverged": diverged,
        "done": points * 10,
        "curve": [(50 * k, round(level * (1 - math.exp(-k / 5)), 4)) for k in range(1, 31)],
        "notes": [],
        "plugins": {},
        "trace": trace.pack(),
        "seconds": round(draw.uniform(1, 9), 3),
        "environment": ENVIRONMENT,
    }


def make_runs(seeds: int = 2) -> Iterator[Run]:
    """Four rules against three attacks, for two f."""
    for rule, attack, f, seed in product(
        ["tq", "cm", "krum", "nnm >> tq"], ["none", "bf", "ipm"], [4, 6], range(seeds)
    ):
        yield Run(rule=rule, attack=attack, f=f, seed=seed)


def fill_small(path: Path) -> Path:
    """A store with all there can be: results, a divergence, a failure, and names that try to be markup."""
    runs = list(make_runs())
    with Store(path) as store:
        for k, run in enumerate(runs):
            store.append(make_record(run, points=40, diverged=7 if k == 0 else None))
        failed = Run(rule="tq", attack="ipm", f=4, seed=9)
        store.append(describe_failure(failed.describe(), failed.key, f"ValueError: {HOSTILE}") | {"seconds": 0.1})
        strange = make_record(runs[-1], points=40)
        strange |= {
            "key": "strange",
            "spec": strange["spec"] | {"rule": HOSTILE, "attack": f"ipm{HOSTILE}", "task": HOSTILE},
        }
        store.append(strange)
    return path


def fill_large(path: Path, count: int = 1000) -> Path:
    """A store of many runs: ten rules, eight attacks, five rho, f from 2 to 6, and as many seeds as it takes.

    Traces come back after a hundred runs, since making them takes most of the time; keys, specs and results do not.
    """
    rules = ["tq", "cm", "krum", "rfa", "huber", "mca", "mean", "nnm >> tq", "nnm >> cm", "nnm >> krum"]
    attacks = ["none", "bf", "ipm", "alie", "lf", "ga", "mimic", "minmax"]
    cells = list(product([0.0, 0.25, 0.5, 0.75, 1.0], [2, 3, 4, 5, 6], rules, attacks))
    cells = cells[:: max(1, -(-3 * len(cells) // count))]  # three seeds of each at least
    made: list[dict[str, Any]] = []
    with path.open("wb") as file:
        for k in range(count):
            rho, f, rule, attack = cells[k % len(cells)]
            run = Run(rule=rule, attack=attack, f=f, seed=k // len(cells), split=f"rho(rho={rho})")
            if len(made) < 100:
                made.append(make_record(run))
            level = random.Random(run.key).uniform(40, 95)
            own = {"key": run.key, "spec": run.describe(), "accuracy": level}
            file.write(write_line(made[k % 100] | own))
    return path
