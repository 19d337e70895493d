"""docs/images/verdict.png: what a verdict says about each client, as bars.

python docs/scripts/verdict.py
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import torch
from look import COLOURS, save

from robagg import parse

RULES = {"mean": "Mean", "huber": "Huber", "tq": "TQ", "krum": "Krum"}
N, F = 12, 3


def main() -> None:
    source = torch.Generator().manual_seed(1)
    x = torch.randn(N, 200, generator=source)
    x[N - F :] = 4 + x[N - F :]  # three liars pull to the same side
    figure, axes = plt.subplots(1, len(RULES), figsize=(10, 2.9), sharey=True)
    for axis, (name, title) in zip(axes, RULES.items(), strict=True):
        verdict = parse(name, f=F).explain(x)
        bars = axis.bar(range(N), 100 * verdict.weights, color=COLOURS[name])
        for bar in bars[N - F :]:
            bar.set(hatch="///", edgecolor="black")
        for i in verdict.not_believed:
            axis.text(i, 100 * float(verdict.weights[i]) + 0.8, "x", ha="center", color="#b3261e", fontweight="bold")
        axis.set(title=title, xlabel="client (the last three lie)", xticks=range(0, N, 2))
    axes[0].set_ylabel("weight in the value, %")
    axes[0].set_ylim(0, 30)
    chosen = int(verdict.weights.argmax())  # Krum's one row
    axes[-1].text(chosen, 27, "100 %", ha="center", va="top", color="black", fontsize=8, rotation=90)
    save(figure, "verdict")


if __name__ == "__main__":
    main()
