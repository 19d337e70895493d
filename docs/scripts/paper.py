"""Writes docs/paper.md from the stores in results/paper; `make paper-docs` calls it.

Figure 1, Example 1 and Theorem 2, which take no training, come from the pages that `make paper-docs` writes before.

python docs/scripts/paper.py
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from mismatches import tell_mismatches
from records import STORES, read_records

from robagg.lab.store import Record
from robagg.paper import NAMES, Computation, Experiment, Plan, find
from robagg.paper.board import Board, Spot, gather
from robagg.paper.compare import Pair, compare, measure_rows, summarise
from robagg.paper.page import list_findings
from robagg.paper.sheets import tell_counts
from robagg.report.formats import render_rows

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "paper"
BATCHES = ROOT / "results" / "batches-without-replacement.json"


def main() -> None:
    boards = read_boards()
    (ROOT / "docs" / "paper.md").write_text("\n\n".join(write_overview(boards)) + "\n", encoding="utf-8")


def read_boards() -> dict[str, Board]:
    """What there is of each experiment, by its name."""
    boards = {}
    for name in NAMES:
        experiment, store = find(name), STORES / f"{name}.jsonl"
        if isinstance(experiment, Experiment) and store.exists():
            boards[name] = gather(experiment, Plan(), store)
    return boards


def write_overview(boards: dict[str, Board]) -> list[str]:
    done = [name for name in NAMES if name in boards]
    left = [n for n in NAMES if n not in boards and isinstance(find(n), Experiment)]
    parts = [
        "# The paper, ours beside theirs",
        "`make paper-docs` writes this page and those of the tables and figures from the records in `results/paper`, "
        "and computes Figure 1, Example 1 and Theorem 2 anew. No training is done for it: `robagg paper table3 "
        "--no-run` shows the same in a terminal.",
        "## What was run",
        render_rows(
            "",
            ["experiment", "runs", "on", "seconds", "runs a minute"],
            [
                *(line for n in done for line in tell_costs(f"[{n}](paper/{n}.md)", read_records(n))),
                *tell_costs("all", {key: record for n in done for key, record in read_records(n).items()}),
            ],
            "markdown",
        ),
        "Seconds are those in which runs were being done, from the records; several runs share a GPU in most of them. "
        "A run that two stores hold is in the lines of both, and once in the total; cells that an experiment takes "
        "from another's store are counted there." + (f" Not run yet: {', '.join(left)}." if left else ""),
        "## How near, and which orderings hold",
    ]
    for name in NAMES:
        if name in boards:
            parts += tell_board(boards[name])
        elif isinstance(find(name), Computation):
            parts += tell_computed(name)
        if (PAGES / f"{name}.png").exists():
            parts.append(f"![{find(name).title}](paper/{name}.png)")
    parts += ["## What does not match, and the likely reason", *tell_mismatches(boards)]
    if BATCHES.exists():
        parts += tell_batches(boards["table3"])
    return parts


def tell_board(board: Board) -> list[str]:
    """How much of an experiment is there, how near it is to the paper's, and which of its orderings hold."""
    name = board.experiment.name
    parts = [f"**[{name}](paper/{name}.md)**: {board.title}. {tell_counts(board)}"]
    if board.experiment.candidates:
        nearest, distance = next(iter(measure_rows(compare(board)).items()))
        return [*parts, f"- Nearest to the paper's row: {nearest}, {distance:.1f} points a cell on average."]
    found = [*(f"- {line}" for line in summarise(compare(board))), list_findings(board.check_claims())]
    return [*parts, *filter(None, ["\n".join(filter(None, found))])]


def tell_computed(name: str) -> list[str]:
    """What its page says of a computation: it takes no training, and is done anew whenever the pages are written."""
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    claims = [line for line in page.splitlines() if line.startswith("- ")]
    return [f"**[{name}](paper/{name}.md)**: {find(name).title}. No training.", "\n".join(claims)]


def tell_costs(name: str, found: Mapping[str, Record]) -> list[list[str]]:
    """A line about runs for each kind of machine they were done on: how many, and how long."""
    by_device: dict[str, list[Record]] = {}
    for record in found.values():
        by_device.setdefault(record["environment"].get("device_name", "?"), []).append(record)
    lines = []
    for device, records in by_device.items():
        seconds = measure_wall(records)
        lines.append([name, f"{len(records)}", device, f"{seconds:.0f}", f"{60 * len(records) / seconds:.1f}"])
    return lines


def measure_wall(records: Iterable[Record]) -> float:
    """Seconds in which at least one of the runs was being done."""
    ends = [(datetime.fromisoformat(r["finished"]).timestamp(), r["seconds"]) for r in records]
    total, reached = 0.0, float("-inf")
    for begin, end in sorted((end - seconds, end) for end, seconds in ends):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def tell_batches(board: Board) -> list[str]:
    """How batches are drawn matters under ALIE: our records beside those of another way to draw them."""
    other: dict[str, dict[str, list[float]]] = json.loads(BATCHES.read_text(encoding="utf-8"))["accuracy"]
    pairs: dict[Spot, Pair] = compare(board)
    columns = list(next(iter(other.values())))
    lines = []
    for row, cells in other.items():
        line = [row]
        for column in columns:
            ours = pairs["f=6", row, column]
            there = sum(cells[column]) / len(cells[column])
            line.append(f"{ours.ours:.1f} / {there:.1f} ({ours.paper:.1f})")
        lines.append(line)
    return [
        "## How batches are drawn",
        "The paper says only that batches come from the client's own data. Ours are drawn with replacement. The same "
        "cells at f=6 with every client going through its data in a shuffled order instead, as a data loader does "
        "(three seeds, `results/batches-without-replacement.json`): with replacement / without, and the paper's in "
        "brackets. Most cells move by less than a point. It matters under ALIE, whose step is the deviation between "
        "clients: there drawing with replacement is nearer to the paper for TQ and Krum.",
        render_rows("", ["rule", *columns], lines, "markdown"),
    ]


if __name__ == "__main__":
    main()
