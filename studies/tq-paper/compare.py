"""A probe's rows less the paper's: `python studies/tq-paper/compare.py STORE...` prints a table for each store.

Of each row: the difference in points under each attack, the mean of their sizes, and how many are near, which is within
two of the paper's deviations and a point.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from robagg import load_plugin
from robagg.lab import load
from robagg.paper.axes import ATTACKS, RULES
from robagg.paper.compare import Pair
from robagg.paper.numbers import find_name, read_numbers
from robagg.report.formats import render_rows
from robagg.report.tables import sum_up

NAMES = {change["rule"]: find_name(label) for label, change in RULES.items()}
TABLES = {"mnist": "table3", "cifar10": "table5"}
Row = tuple[int, str, str, int]
"""f, the rule's text, the settings that are not the paper's, and how many seeds."""


def compare(store: Path) -> dict[Row, dict[str, Pair]]:
    """The cells of a store beside the paper's, by row and attack."""
    load_plugin(Path(__file__).with_name("tq_varied.py"))
    cells = defaultdict(list)
    for run in load(store):
        cells[run["f"], run["method"], describe(run), run["attack"]].append(run)
    rows: dict[Row, dict[str, Pair]] = defaultdict(dict)
    for label, change in ATTACKS.items():
        for (f, method, settings, attack), runs in sorted(cells.items()):
            if attack == change["attack"]:
                numbers = read_numbers(TABLES[runs[0]["task"].split("(")[0]])
                paper = numbers[f"f={f}", NAMES.get(method.split("(")[0], "TQ"), label]
                rows[f, method, settings, len(runs)][label] = Pair(sum_up(runs).mean, *paper)
    return rows


def describe(run: dict[str, Any]) -> str:
    """What of a run is not as the paper states it."""
    changed = [f"{name}={run[name]}" for name in ("rounds", "schedule", "statistics") if run.get(name) is not None]
    return ", ".join([*([run["task"]] if "(" in run["task"] else []), *changed])


def write_row(pairs: dict[str, Pair]) -> list[str]:
    """A row's difference under each attack, the mean of their sizes, and how many are near."""
    sizes = [abs(pair.difference) for pair in pairs.values()]
    cells = [f"{pairs[label].difference:+.2f}" if label in pairs else "-" for label in ATTACKS]
    return [*cells, f"{sum(sizes) / len(sizes):.1f}", f"{sum(pair.near for pair in pairs.values())} of {len(pairs)}"]


def main() -> None:
    head = ["f", "rule", "changed", "seeds", *ATTACKS, "off", "near"]
    for store in map(Path, sys.argv[1:]):
        lines = [[*map(str, row), *write_row(pairs)] for row, pairs in compare(store).items()]
        print(render_rows(store.stem, head, lines, "markdown") + "\n")


if __name__ == "__main__":
    main()
