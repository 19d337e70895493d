"""What the way of evaluating does to CIFAR-10's numbers: a part of the page that paper.py writes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from changes import find_run
from records import RESULTS

from robagg.lab.paper.axes import ATTACKS
from robagg.report.board import Spot
from robagg.report.compare import Pair

STATISTICS = RESULTS / "running-statistics.jsonl"
"""TQ's runs on CIFAR-10, each evaluated with running BatchNorm statistics that were moved in three ways."""
EVALUATION = RESULTS / "evaluation.jsonl"
"""Runs as stated, each evaluated with running statistics, by test batches, and on cropped images."""
WAYS = {
    "by the statistics of test batches of 32": "batches of 32",
    "of 128": "batches of 128",
    "of 1,000": "batches of 1000",
    "with running statistics, on test images cropped and flipped as in training": "cropped",
}


def tell_statistics() -> str:
    """What the way of keeping running statistics of BatchNorm does."""
    runs = read_lines(STATISTICS)
    most = max(abs(run[way] - run["mean"]) for run in runs for way in ("median", "sequential"))
    return (
        "BatchNorm's policy is not stated either. How running statistics are kept explains nothing: in "
        f"{len(runs)} runs of TQ the models were also evaluated with those moved by one client after the other, as a "
        "loop over clients that share one model leaves them, and by the clients' median, and no accuracy differs by "
        f"more than {most:.2f} points (`benchmarks/running_statistics.py`; the cropped runs of seed 0 there are other "
        "ones than the table's)."
    )


def tell_evaluation() -> str:
    """What it does to evaluate by the statistics of test batches, or on images cropped as in training."""
    runs = read_evaluation()
    told = "; ".join(f"{way} {fmean(run[name] - run['mean'] for run in runs):+.1f}" for way, name in WAYS.items())
    last = sum(run["cell"].startswith("tqlast") for run in runs)
    again = max(
        abs(run["mean"] - find_run("table5", *run["cell"].split(), panel="f=4", seed=run["seed"]))
        for run in runs
        if not run["cell"].startswith("tqlast")
    )
    return (
        f"To evaluate in another way does matter. {len(runs)} runs with rounds, rates and crops as in table5 at f=4 "
        f"({last} of them TQ from the last aggregate; `benchmarks/evaluation.py`) were each evaluated in several ways. "
        f"On average a model loses, in points: {told}. They are other runs than the table's, and end up to "
        f'{again:.1f} points from its runs of the same seed. In a run of one\'s own the setting `statistics="batch"` '
        "does it."
    )


def measure_row(stated: Mapping[Spot, Pair], way: str) -> tuple[list[float], int]:
    """TQ's row at f=4 evaluated in one way, less the paper's, and how many seeds its cells have."""
    found = defaultdict(list)
    for run in read_evaluation():
        found[run["cell"]].append(run[way])
    rows = [found[f"tq {column.lower()}"] for column in ATTACKS]
    gaps = [fmean(row) - stated["f=4", "TQ", column].paper for column, row in zip(ATTACKS, rows, strict=True)]
    return gaps, min(map(len, rows))


def find_batches() -> list[str]:
    """The ways of evaluating by test batches, from the smallest to the largest."""
    return [way for way in read_evaluation()[0] if way.startswith("batches of")]


def read_evaluation() -> list[dict[str, Any]]:
    return [run for run in read_lines(EVALUATION) if run["task"] == "cifar10"]


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
