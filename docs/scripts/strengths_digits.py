"""Accuracy on digits against two attacks' strength: docs/images/profile.png, and the table in the engineers' guide.

    python docs/scripts/strengths_digits.py; `make paper-docs` calls it

Runs that `results/strengths-digits.jsonl` has already are not done again; all of them take a few minutes.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
from blocks import put
from look import line, save
from records import RESULTS, sum_up_cells

from robagg.lab import Options, grid, load, sweep
from robagg.report.formats import render_rows

STORE = RESULTS / "strengths-digits.jsonl"
PAGE = Path(__file__).parents[1] / "engineers.md"
RULES = {
    "tq": "TQ",
    "huber": "Huber",
    "cm": "CM",
    "nnm >> cm": "NNM, then CM",
    "nnm >> tq": "NNM, then TQ",
    "nnm >> tq(floor=False)": "NNM, then TQ, no floor",
    "mean": "Mean",
}
STRENGTHS = {"alie": ("z", [0.25, 0.5, 0.75, 1.0, 1.5, 3.0]), "ipm": ("c0", [0.5, 1.0, 2.0, 4.0, 7.0])}
SEEDS = range(3)


def main() -> None:
    attacks = [f"{attack}({name}={value})" for attack, (name, values) in STRENGTHS.items() for value in values]
    runs = grid(rules=list(RULES), attacks=attacks, f=6, rho=0.5, seeds=SEEDS, settings={"rounds": 400})
    sweep(runs, STORE, options=Options(device="cpu", workers=2))
    draw()
    put(PAGE, "profile", write_table())


def draw() -> None:
    """A panel an attack, a line a rule."""
    means = read_means()
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
    for axis, (attack, (name, values)) in zip(axes, STRENGTHS.items(), strict=True):
        for rule, title in RULES.items():
            axis.plot(values, [means[rule, attack, value] for value in values], **line(rule), label=title)
        axis.set(xscale="log", xlabel=f"{attack.upper()}: strength {name}", ylim=(0, 100))
        axis.set_xticks(values, [f"{value:g}" for value in values], minor=False)
        axis.set_xticks([], minor=True)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("accuracy after 400 rounds, %")
    axes[1].legend(loc="lower left", bbox_to_anchor=(1.0, 0.2), frameon=False, handlelength=3.5)
    save(figure, "profile")


def write_table() -> str:
    """Rules by strengths, with the least mean of each rule."""
    means, spots = read_means(), [(attack, value) for attack, (_, values) in STRENGTHS.items() for value in values]
    head = [
        f"{attack.upper()} {STRENGTHS[attack][0]}={value:g}" if value == STRENGTHS[attack][1][0] else f"{value:g}"
        for attack, value in spots
    ]
    lines = [[means[rule, *spot] for spot in spots] for rule in RULES]
    told = [
        [title, *(f"{mean:.1f}" for mean in (*row, min(row)))] for title, row in zip(RULES.values(), lines, strict=True)
    ]
    return render_rows("", ["accuracy, %", *head, "worst"], told, "markdown").strip()


def read_means() -> dict[tuple[str, str, float], float]:
    """Mean accuracy over seeds by rule, attack and strength."""
    cells = sum_up_cells(load(STORE))
    return {
        (rule, attack, value): cells[rule, f"{attack}({name}={value})"].mean
        for rule in RULES
        for attack, (name, values) in STRENGTHS.items()
        for value in values
    }


if __name__ == "__main__":
    main()
