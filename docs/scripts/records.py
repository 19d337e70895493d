"""The committed records, as the paper's page reads them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from statistics import fmean

from robagg.lab import Store
from robagg.lab.store import Record
from robagg.report.tables import Cell, sum_up

RESULTS = Path(__file__).parents[2] / "results"
STORES = RESULTS / "paper"


@cache
def read_records(name: str) -> dict[str, Record]:
    """An experiment's runs that came to an end, by their keys."""
    return {key: r for key, r in Store(STORES / f"{name}.jsonl").read().records.items() if r["status"] == "ok"}


def read_rule(rule: str, name: str) -> list[Record]:
    """A rule's runs in an experiment."""
    return [record for record in read_records(name).values() if record["spec"]["rule"].startswith(f"{rule}(")]


def sum_up_cells(runs: Iterable[Record]) -> dict[tuple[str, str], Cell]:
    """Runs that `load` gave, summed up by rule and attack."""
    cells: dict[tuple[str, str], list[Record]] = {}
    for run in runs:
        cells.setdefault((run["method"], run["attack"]), []).append(run)
    return {spot: sum_up(found) for spot, found in cells.items()}


def measure_cut(record: Record) -> float:
    """The share of a run's rounds in which nine of ten honest clients or more were cut."""
    honest = record["spec"]["n"] - record["spec"]["f"]
    return fmean(cut >= 0.9 * honest for cut in record["trace"]["honest_dropped"])
