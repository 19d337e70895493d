"""Accuracy against the strength of attacks: the tables of the guides, and docs/images/profile.png.

    python docs/scripts/strengths.py; `make paper-docs` calls it

MNIST is read from the committed records. Runs on digits that `results/strengths-digits.jsonl` has are not done again;
all of them take a few minutes.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import matplotlib.pyplot as plt
from blocks import put

from pictures import line, save
from robagg.lab import Options, grid, load, sweep
from robagg.lab.store import Record
from robagg.paper.pages import write_cell
from robagg.report.formats import render_rows
from robagg.report.tables import Cell, sum_up

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
STORES = [RESULTS / name for name in ("strengths.jsonl", "paper/fig3.jsonl", "paper/table3.jsonl")]
RULES = ("tq", "huber", "mca", "nnm >> cm", "nnm >> huber(floor=False)", "nnm >> mca", "nnm >> tq(floor=False)")
ATTACKS = {"alie": "ALIE z=0.37", "alie(z=0.75)": "z=0.75", "alie(z=1.0)": "z=1.0", "alie(z=1.5)": "z=1.5"}
ATTACKS |= {"ipm": "IPM c0=7", "ipm(c0=1.0)": "c0=1"}
MNIST = {"task": "mnist", "n": 20, "f": 6, "rho": 0.5}
DIGITS = RESULTS / "strengths-digits.jsonl"
DIGITS_RULES = ("tq", "huber", "cm", "nnm >> cm", "nnm >> tq", "nnm >> tq(floor=False)", "mean")
STRENGTHS = {"alie": ("z", [0.25, 0.5, 0.75, 1.0, 1.5, 3.0]), "ipm": ("c0", [0.5, 1.0, 2.0, 4.0, 7.0])}

Cells = dict[tuple[str, str], Cell]


def main() -> None:
    for page in ("engineers.md", "flower.md"):
        put(ROOT / "docs" / page, "strengths", write_table(read_mnist()))
    attacks = [f"{attack}({name}={value})" for attack, (name, values) in STRENGTHS.items() for value in values]
    runs = grid(rules=DIGITS_RULES, attacks=attacks, f=6, rho=0.5, seeds=range(3), settings={"rounds": 400})
    sweep(runs, DIGITS, options=Options(device="cpu", workers=2))
    draw_profile(read_digits())
    put(ROOT / "docs" / "engineers.md", "profile", write_profile(read_digits()))


def name_rule(text: str) -> str:
    """A chain in words."""
    plain, floor, _ = text.partition("(floor=False)")
    names = [part.title() if part in ("mean", "huber") else part.upper() for part in plain.split(" >> ")]
    return ", then ".join(names) + (", no floor" if floor else "")


def sum_up_cells(runs: Iterable[Record]) -> Cells:
    """Runs that `load` gave, summed up by rule and attack."""
    cells: dict[tuple[str, str], list[Record]] = {}
    for run in runs:
        cells.setdefault((run["method"], run["attack"]), []).append(run)
    return {spot: sum_up(found) for spot, found in cells.items()}


def read_mnist() -> Cells:
    """The cells on MNIST, from all stores that have some; a run that two stores have counts once."""
    found = {record["key"]: record for store in STORES for record in load(store)}.values()
    return sum_up_cells(
        run for run in found if all(run[k] == value for k, value in MNIST.items()) and "rounds" not in run
    )


def write_table(cells: Cells) -> str:
    """Rules by attacks, with the least mean of each rule, which takes a run at every strength."""
    lines = [
        [name_rule(rule), *(write_cell(cells[rule, attack], digits=1, sign="±") for attack in ATTACKS), f"{worst:.1f}"]
        for rule in RULES
        for worst in [min(cells[rule, attack].mean for attack in ATTACKS)]
    ]
    return render_rows("", ["accuracy, %", *ATTACKS.values(), "worst"], lines, "markdown").strip()


def read_digits() -> dict[str, list[tuple[str, float, float]]]:
    """Attack, strength and mean accuracy over seeds, by rule."""
    cells = sum_up_cells(load(DIGITS))
    spots = [(attack, name, value) for attack, (name, values) in STRENGTHS.items() for value in values]
    return {
        rule: [(attack, value, cells[rule, f"{attack}({name}={value})"].mean) for attack, name, value in spots]
        for rule in DIGITS_RULES
    }


def write_profile(means: dict[str, list[tuple[str, float, float]]]) -> str:
    """Rules by strengths, with the least mean of each rule."""
    first = {(attack, values[0]): f"{attack.upper()} {name}=" for attack, (name, values) in STRENGTHS.items()}
    head = [f"{first.get((attack, value), '')}{value:g}" for attack, value, _ in means["tq"]]
    lines = []
    for rule in DIGITS_RULES:
        row = [mean for _, _, mean in means[rule]]
        lines.append([name_rule(rule), *(f"{mean:.1f}" for mean in (*row, min(row)))])
    return render_rows("", ["accuracy, %", *head, "worst"], lines, "markdown").strip()


def draw_profile(means: dict[str, list[tuple[str, float, float]]]) -> None:
    """One panel per attack, one line per rule."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
    for axis, (attack, (name, values)) in zip(axes, STRENGTHS.items(), strict=True):
        for rule in DIGITS_RULES:
            axis.plot(values, [mean for a, _, mean in means[rule] if a == attack], **line(rule), label=name_rule(rule))
        axis.set(xscale="log", xlabel=f"{attack.upper()}: strength {name}", ylim=(0, 100))
        axis.set_xticks(values, [f"{value:g}" for value in values], minor=False)
        axis.set_xticks([], minor=True)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("accuracy after 400 rounds, %")
    axes[1].legend(loc="lower left", bbox_to_anchor=(1.0, 0.2), frameon=False, handlelength=3.5)
    save(figure, "profile")


if __name__ == "__main__":
    main()
