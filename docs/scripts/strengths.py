"""The table of attack strengths on MNIST in the guides for engineers and for Flower, from the committed records.

python docs/scripts/strengths.py; `make paper-docs` calls it
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from blocks import put
from records import RESULTS, STORES, sum_up_cells

from robagg.lab import load
from robagg.lab.store import Record
from robagg.paper.sheets import tell_cell
from robagg.report.formats import render_rows
from robagg.report.tables import Cell

DOCS = Path(__file__).parents[1]
RULES = {
    "tq": "TQ",
    "huber": "Huber",
    "mca": "MCA",
    "nnm >> cm": "NNM, then CM",
    "nnm >> huber(floor=False)": "NNM, then Huber, no floor",
    "nnm >> mca": "NNM, then MCA",
    "nnm >> tq(floor=False)": "NNM, then TQ, no floor",
}
ATTACKS = {
    "alie": "ALIE z=0.37",
    "alie(z=0.75)": "z=0.75",
    "alie(z=1.0)": "z=1.0",
    "alie(z=1.5)": "z=1.5",
    "ipm": "IPM c0=7",
    "ipm(c0=1.0)": "c0=1",
}
CELL = {"task": "mnist", "n": 20, "f": 6, "rho": 0.5}


def main() -> None:
    for page in ("engineers.md", "flower.md"):
        put(DOCS / page, "strengths", write_table())


def write_table() -> str:
    """Rules by attacks, with the least mean of each rule."""
    lines = [
        [
            title,
            *(tell_cell(read_cells()[rule, attack], digits=1, sign="±") for attack in ATTACKS),
            f"{find_worst(rule):.1f}",
        ]
        for rule, title in RULES.items()
    ]
    return render_rows("", ["accuracy, %", *ATTACKS.values(), "worst"], lines, "markdown").strip()


def find_worst(rule: str) -> float:
    """The least mean accuracy of a rule; it takes a run at every strength."""
    return min(read_cells()[rule, attack].mean for attack in ATTACKS)


@cache
def read_cells() -> dict[tuple[str, str], Cell]:
    """The runs in question summed up, by rule and attack."""
    return sum_up_cells(read_runs().values())


def read_runs() -> dict[str, Record]:
    """The runs in question by their keys, from all stores that have some; of repeated ones the tables' own count."""
    stores = [RESULTS / "strengths.jsonl", *(STORES / f"{name}.jsonl" for name in ("fig3", "table3"))]
    found = {record["key"]: record for store in stores for record in load(store)}
    return {
        key: record
        for key, record in found.items()
        if all(record[name] == value for name, value in CELL.items()) and "rounds" not in record
    }


if __name__ == "__main__":
    main()
