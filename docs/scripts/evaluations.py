"""What the way of evaluating does to CIFAR-10's numbers: a part of the page that paper.py writes."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from changes import SAME, find_run
from records import RESULTS

from robagg.paper.axes import ATTACKS
from robagg.paper.board import Spot
from robagg.paper.compare import Pair
from robagg.paper.table5 import BY_BATCH
from robagg.report.formats import render_rows

STATISTICS = RESULTS / "running-statistics.jsonl"
"""TQ's runs on CIFAR-10, each evaluated with running BatchNorm statistics that were moved in three ways."""
EVALUATION = RESULTS / "evaluation.jsonl"
"""Runs as stated at f=4, each evaluated with running statistics, by test batches, and on cropped images."""
RUNNING, CROPPED = "running statistics", "running statistics, test images cropped and flipped as in training"
LIMIT = 3.0
"""Points within which TQ on CIFAR-10 should be of the paper."""


def tell_ways(stated: Mapping[Spot, Pair]) -> str:
    """What it does to evaluate by test batches or on images cropped as in training, with TQ's row in a table."""
    runs = read_evaluation()
    own = [run for run in runs if run["cell"].startswith("tq ")]
    lines = [
        [f"{RUNNING}, in table5's runs", *tell_row(find_row(stated, "f=4"))],
        ["test batches of 128, in table5's runs", *tell_row(find_row(stated, f"f=4{BY_BATCH}"))],
        *([way, *tell_row(measure_row(stated, name))] for way, name in find_ways().items()),
    ]
    table = render_rows("", ["evaluated by", *ATTACKS, "within 3", "near", "off"], lines, "markdown")
    return (
        "Among what the paper leaves open is what BatchNorm goes by in evaluation: running statistics, or those of "
        f"each test batch, as with `track_running_stats=False`. {len(runs)} runs at f=4 with all that the paper states "
        "were evaluated in several ways (`benchmarks/evaluation.py`, `results/evaluation.jsonl`). Of TQ from the "
        f"median, {len(own) // len(ATTACKS)} seeds: the cells less the paper's, how many are within 3 points, how many "
        "near (within two of the paper's deviations and a point), and how many points they are off on average:\n\n"
        f"{table}\n\n{tell_limits(stated, own)} {tell_elsewhere(stated)}"
    )


def tell_elsewhere(stated: Mapping[Spot, Pair]) -> str:
    """What test batches do where they were not chosen."""
    told = []
    for f in ("f=2", "f=3"):
        if row := find_row(stated, f"{f}{BY_BATCH}"):
            gaps = [pair.difference for pair in row]
            within, before = (sum(abs(p.difference) <= LIMIT for p in some) for some in (row, find_row(stated, f)))
            told.append(
                f"{min(gaps):+.1f} to {max(gaps):+.1f} at {f}, {within} of {len(row)} within 3 ({before} by running "
                "statistics)"
            )
    return f"Where test batches were not chosen, TQ is by them, less the paper's: {'; '.join(told)}." if told else ""


def tell_limits(stated: Mapping[Spot, Pair], own: Collection[Mapping[str, Any]]) -> str:
    """What speaks against taking test batches for the paper's way."""
    drift = [abs(run["mean"] - find_run("table5", *run["cell"].split(), panel="f=4", seed=run["seed"])) for run in own]
    gaps = [pair.difference for pair in measure_row(stated, "mean")]
    others = [
        f"{row} {attack} {run['batches of 128'] - paper:+.1f} ({run['mean'] - paper:+.1f})"
        for run in read_evaluation()
        for rule, attack in [run["cell"].upper().split()]
        if (row := {**SAME, "tqlast": "TQ from the last aggregate"}.get(rule.lower(), "TQ")) != "TQ"
        for paper in [stated["f=4", SAME.get(rule.lower(), "TQ"), attack].paper]
    ]
    return (
        f"{sum(gap < 0.005 for gap in drift)} of these {len(drift)} runs end where table5's of the same seed do, the "
        f"others up to {max(drift):.1f} points from them. So at f=4 by test batches of any size tried all of TQ's "
        "cells are within 3 points, and by running statistics not; but that does not show that the paper evaluates "
        "so. Whatever "
        f"takes {max(gaps) - LIMIT:.1f} to {LIMIT + min(gaps):.1f} points from each cell does the same, as cropped "
        "test images do; MIMIC's moves away; single seeds lie further off; and the way was chosen with the paper's "
        "numbers known. Other cells by test batches of 128 (by running statistics), one seed, less the paper's: "
        f"{', '.join(others)}."
    )


def tell_statistics() -> str:
    """What the way of keeping running statistics of BatchNorm does."""
    runs = read_lines(STATISTICS)
    most = max(abs(run[way] - run["mean"]) for run in runs for way in ("median", "sequential"))
    return (
        f"How running statistics are kept explains nothing: in {len(runs)} runs of TQ the models were also evaluated "
        "with those moved by one client after the other, as a loop over clients that share one model leaves them, and "
        f"by the clients' median, and no accuracy differs by more than {most:.2f} points "
        "(`benchmarks/running_statistics.py`; the cropped runs of seed 0 there are other ones than the table's)."
    )


def find_row(pairs: Mapping[Spot, Pair], panel: str) -> list[Pair]:
    """TQ's cells in a panel of table5."""
    return [pair for spot, pair in pairs.items() if spot[:2] == (panel, "TQ")]


def measure_row(stated: Mapping[Spot, Pair], name: str) -> list[Pair]:
    """TQ's row at f=4, evaluated in one way, beside the paper's."""
    return [
        replace(
            stated["f=4", "TQ", column],
            ours=fmean(run[name] for run in read_evaluation() if run["cell"] == f"tq {column.lower()}"),
        )
        for column in ATTACKS
    ]


def tell_row(row: Collection[Pair]) -> list[str]:
    """Cells less the paper's; how many are within 3 points, how many near, and how far off they are on average."""
    gaps = [pair.difference for pair in row]
    within, near = sum(abs(gap) <= LIMIT for gap in gaps), sum(pair.near for pair in row)
    return [*(f"{round(gap, 1) + 0.0:+.1f}" for gap in gaps), f"{within}", f"{near}", f"{fmean(map(abs, gaps)):.1f}"]


def find_ways() -> dict[str, str]:
    """The ways of evaluating, in words and as the records name them."""
    batches = [name for name in read_evaluation()[0] if name.startswith("batches of")]
    return {RUNNING: "mean", **{f"test {name}": name for name in batches}, CROPPED: "cropped"}


@cache
def read_evaluation() -> list[dict[str, Any]]:
    return [run for run in read_lines(EVALUATION) if run["task"] == "cifar10"]


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
