"""Every rule under eight attacks, and what rules leave of backdoors: tables of the guides, from committed records.

    python docs/scripts/every_rule.py; `make paper-docs` calls it

The runs are those of `examples/sweeps/rules.toml` and `backdoors.toml`: `robagg sweep` does them.
"""

from __future__ import annotations

from pathlib import Path

from blocks import put

from robagg.lab import load
from robagg.lab.store import Record
from robagg.paper.pages import write_cell
from robagg.report.formats import render_rows
from robagg.report.measures import split_measures
from robagg.report.tables import sum_up

ROOT = Path(__file__).parents[2]
STORES = ("rules-digits", "backdoors-digits", "backdoors-mnist")
RULES, BACKDOORS, MNIST = (ROOT / "results" / f"{name}.jsonl" for name in STORES)
ATTACKS = {
    **{"none": "none", "alie": "ALIE z=0.37", "alie(z=1.0)": "z=1", "ipm(c0=1.0)": "IPM c0=1", "ipm": "c0=7"},
    **{"bf": "BF", "mimic": "MIMIC", "minmax": "MinMax"},
}
AIMS = ("backdoor", "backdoor(share=0.1)", "dba", "replacement", "neurotoxin")


def main() -> None:
    put(ROOT / "docs" / "researchers.md", "rules", write_rules(load(RULES)))
    put(ROOT / "docs" / "engineers.md", "backdoors", write_backdoors(load(BACKDOORS)))
    put(ROOT / "docs" / "engineers.md", "mnist", write_one(load(MNIST)))


def write_rules(records: list[Record]) -> str:
    """Rules by attacks, the best worst case first."""
    lines = {}
    for rule in {record["method"]: None for record in records}:
        row = [sum_up([r for r in records if (r["method"], r["attack"]) == (rule, attack)]) for attack in ATTACKS]
        worst = min(-1.0 if cell.mean is None else cell.mean for cell in row[1:])
        lines[rule] = worst, [f"`{rule}`", *(write_cell(cell, digits=1) for cell in row), f"{max(worst, 0):.1f}"]
    order = sorted(lines.values(), key=lambda line: -line[0])
    return render_rows("", ["accuracy, %", *ATTACKS.values(), "worst"], [row for _, row in order], "markdown").strip()


def write_backdoors(records: list[Record]) -> str:
    """For each f rules by attacks: accuracy and success, means over the seeds."""
    free = [record for record in records if record["f"] == 0]
    lines = [["nobody poisons (mean)", "0", _write(free), *[""] * (len(AIMS) - 1)]]
    for f in sorted({record["f"] for record in records} - {0}):
        for rule in {record["method"]: None for record in records}:
            of = [record for record in records if (record["method"], record["f"]) == (rule, f)]
            lines.append([f"`{rule}`", str(f), *(_write([r for r in of if r["attack"] == aim]) for aim in AIMS)])
    return render_rows("", ["accuracy / success, %", "f", *AIMS], lines, "markdown").strip()


def write_one(records: list[Record]) -> str:
    """Accuracy and success of the runs under one attack."""
    lines = [
        [f"`{rule}`", _write([r for r in records if r["method"] == rule])]
        for rule in {r["method"]: None for r in records}
    ]
    return render_rows("", ["", "accuracy / success, %"], lines, "markdown").strip()


def _write(records: list[Record]) -> str:
    parts = [split_measures(records, [measure]) for measure in ("accuracy", "attack_success")]
    return " / ".join(write_cell(sum_up(part), digits=1, spread=False) for part in parts)


if __name__ == "__main__":
    main()
