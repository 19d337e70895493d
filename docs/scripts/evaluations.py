"""What the way of evaluating does to CIFAR-10's numbers: a part of the page that paper.py writes."""

from __future__ import annotations

import json
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
"""Runs with the drop as stated, each evaluated with running statistics, by test batches, and on cropped images."""
WAYS = {
    "by the statistics of test batches of 32": "batches of 32",
    "of 128": "batches of 128",
    "of 1,000": "batches of 1000",
    "with running statistics, on test images cropped and flipped as in training": "cropped",
}
ROWS = {
    "running statistics": "mean",
    "batches of 128": "batches of 128",
    "batches of 32": "batches of 32",
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


def tell_evaluation(stated: Mapping[Spot, Pair]) -> str:
    """What it does to evaluate by the statistics of test batches, or on images cropped as in training."""
    runs = [run for run in read_lines(EVALUATION) if (run["task"], run["seed"]) == ("cifar10", 0)]
    told = "; ".join(f"{way} {fmean(run[name] - run['mean'] for run in runs):+.1f}" for way, name in WAYS.items())
    cells = {run["cell"]: run for run in runs}
    rows = "; ".join(
        f"{way}: "
        + ", ".join(
            f"{column} {cells[f'tq {column.lower()}'][name] - stated['f=4', 'TQ', column].paper:+.1f}"
            for column in ATTACKS
        )
        for way, name in ROWS.items()
    )
    last = sum(cell.startswith("tqlast") for cell in cells)
    again = max(
        abs(run["mean"] - find_run("table5", *cell.split(), panel="f=4", seed=0))
        for cell, run in cells.items()
        if not cell.startswith("tqlast")
    )
    return (
        f"To evaluate in another way does matter. In {len(runs)} runs with the drop as stated (f=4, seed 0, {last} of "
        "them TQ from the last aggregate; `benchmarks/evaluation.py`) every model loses, on average, in points: "
        f"{told}. TQ's row of these runs, from the median, less the paper's: {rows}. They are other runs than the "
        f"table's, and end up to {again:.1f} points from its runs of the same seed. No run of the tables was evaluated "
        'so; the setting `statistics="batch"` does it.'
    )


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
