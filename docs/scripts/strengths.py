"""The table of attack strengths on MNIST in the guides for engineers and for Flower, from the committed records.

python docs/scripts/strengths.py; `make paper-docs` calls it
"""

from __future__ import annotations

from pathlib import Path

from blocks import put
from records import RESULTS, STORES

from robagg.lab import load
from robagg.lab.store import Record
from robagg.report.formats import render_rows
from robagg.report.sheets import tell_cell
from robagg.report.tables import sum_up

DOCS = Path(__file__).parents[1]
RULES = {"tq": "TQ", "huber": "Huber", "nnm >> cm": "NNM, then CM", "nnm >> tq": "NNM, then TQ"}
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
    """Rules by attacks; a cell that was not run is empty."""
    cells: dict[tuple[str, str], list[Record]] = {}
    for record in read_runs().values():
        cells.setdefault((record["method"], record["attack"]), []).append(record)
    lines = [
        [
            title,
            *(
                tell_cell(sum_up(cells[rule, attack]), digits=1, sign="±") if (rule, attack) in cells else ""
                for attack in ATTACKS
            ),
        ]
        for rule, title in RULES.items()
    ]
    return render_rows("", ["accuracy, %", *ATTACKS.values()], lines, "markdown").strip()


def read_runs() -> dict[str, Record]:
    """The runs in question by their keys, from all stores that have some: a cell of the paper's is done once."""
    stores = [*(STORES / f"{name}.jsonl" for name in ("table3", "fig3")), RESULTS / "strengths.jsonl"]
    found = {record["key"]: record for store in stores for record in load(store)}
    return {
        key: record
        for key, record in found.items()
        if all(record[name] == value for name, value in CELL.items()) and "rounds" not in record
    }


if __name__ == "__main__":
    main()
