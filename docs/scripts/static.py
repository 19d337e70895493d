"""The worst positions of Byzantine rows that a search finds for some rules: a store, and the table in docs/theory.md.

python docs/scripts/static.py [RULE...]      (what the store has is not searched again; an hour on one core)
python docs/scripts/static.py --table        (the table alone; `make paper-docs` calls it)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from blocks import put

from robagg import parse
from robagg.report.formats import render_rows
from robagg.worst_case import HONEST, find_worst_positions

ROOT = Path(__file__).parents[2]
STORE = ROOT / "results" / "profile" / "static.jsonl"
PAGE = ROOT / "docs" / "theory.md"
RULES = ("scaledfilter", "spectralfilter", "caf", "tq", "nnm >> tq", "huber", "cm")
TOLERANCES = (2, 4, 6, 8)
N, D, BUDGET = 20, 40, 4000


def main(rules: list[str]) -> None:
    if rules != ["--table"]:
        for rule in rules or RULES:
            search(rule)
    put(PAGE, "static", write_table())


def search(rule: str) -> None:
    done = {(one["rule"], one["f"], one["honest"]) for one in read()}
    for f in TOLERANCES:
        for honest in HONEST:
            if (str(parse(rule, f=f)), f, honest) not in done:
                found = find_worst_positions(rule, honest, N, f, D, budget=BUDGET)
                with STORE.open("a", encoding="utf-8") as store:
                    store.write(json.dumps(found.to_dict()) + "\n")


def read() -> list[dict]:
    return [json.loads(line) for line in STORE.read_text(encoding="utf-8").splitlines()] if STORE.exists() else []


def write_table() -> str:
    """Rules and f by honest rows: the ratio."""
    found = {(one["rule"], one["f"], one["honest"]): one["ratio"] for one in read()}
    lines = []
    for rule in RULES:
        for f in TOLERANCES:
            ratios = [found.get((str(parse(rule, f=f)), f, honest)) for honest in HONEST]
            if None not in ratios:
                lines.append(
                    [f"`{rule}`", str(f), *(f"{ratio:.2g}" if ratio < 1e3 else "unbounded" for ratio in ratios)]
                )
    return render_rows("", ["rule", "f of 20", *HONEST], lines, "markdown").strip()


if __name__ == "__main__":
    main(sys.argv[1:])
