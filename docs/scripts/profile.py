"""docs/images/profile.png: accuracy on digits against the strength of two attacks. Takes a few minutes.

    python docs/scripts/profile.py [STORE]

Runs that the store has already are not done again.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
from look import line, save

from robagg.lab import Options, grid, load, sweep

RULES = {"tq": "TQ", "huber": "Huber", "cm": "CM", "nnm >> cm": "NNM, CM", "nnm >> tq": "NNM, TQ", "mean": "Mean"}
STRENGTHS = {"alie": ("z", [0.25, 0.5, 0.75, 1.0, 1.5, 3.0]), "ipm": ("c0", [0.5, 1.0, 2.0, 4.0, 7.0])}
SEEDS = range(3)


def main(store: Path) -> None:
    attacks = [f"{attack}({name}={value})" for attack, (name, values) in STRENGTHS.items() for value in values]
    runs = grid(rules=list(RULES), attacks=attacks, f=6, rho=0.5, seeds=SEEDS, settings={"rounds": 400})
    sweep(runs, store, options=Options(device="cpu", workers=2))
    found: dict[tuple[str, str], list[float]] = {}
    for record in load(store):
        diverged = record["diverged"] is not None or record["accuracy"] is None
        found.setdefault((record["method"], record["attack"]), []).append(0.0 if diverged else record["accuracy"])
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
    for axis, (attack, (name, values)) in zip(axes, STRENGTHS.items(), strict=True):
        for rule, title in RULES.items():
            means = [sum(cell) / len(cell) for value in values if (cell := found[rule, f"{attack}({name}={value})"])]
            axis.plot(values, means, **line(rule), label=title)
            print(f"{attack} {title:8}", " ".join(f"{name}={v:g}: {m:.1f}" for v, m in zip(values, means, strict=True)))
        axis.set(xscale="log", xlabel=f"{attack.upper()}: strength {name}", ylim=(0, 100))
        axis.set_xticks(values, [f"{value:g}" for value in values], minor=False)
        axis.set_xticks([], minor=True)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("accuracy after 400 rounds, %")
    axes[1].legend(loc="lower left", bbox_to_anchor=(1.0, 0.2), frameon=False, handlelength=3.5)
    save(figure, "profile")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/profile.jsonl"))
