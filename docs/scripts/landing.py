"""docs/images/landing.png: where each rule lands in the plane when five of seventeen points lie.

python docs/scripts/landing.py
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import torch
from look import COLOURS, MARKS, save

from robagg import parse

RULES = {name.lower(): name for name in ("TQ", "Huber", "RFA", "MCA", "Krum", "CM", "TM", "Mean")}
F = 5


def main() -> None:
    source = torch.Generator().manual_seed(7)
    honest = torch.randn(12, 2, generator=source, dtype=torch.float64)
    liars = torch.tensor([9.0, 6.0], dtype=torch.float64) + 0.4 * torch.randn(5, 2, generator=source)
    x = torch.cat([honest, liars])
    truth = honest.mean(0)
    figure, (wide, close) = plt.subplots(1, 2, figsize=(9.5, 4.4))
    verdict = parse("tq", f=F).explain(x)
    for axis in (wide, close):
        axis.scatter(*honest.T, color="#718096", s=26, label="honest clients")
        axis.scatter(*liars.T, color="#b3261e", s=34, marker="^", label="liars")
        axis.scatter(*truth, color="black", marker="+", s=420, linewidths=2, label="mean of the honest", zorder=3)
        for name, title in RULES.items():
            value = parse(name, f=F)(x)
            look = {"color": COLOURS[name], "marker": MARKS[name], "s": 230 if name == "tq" else 100}
            axis.scatter(*value, **look, edgecolors="white", label=title, zorder=4)
        axis.set(aspect="equal", xlabel="first number sent")
        axis.grid(alpha=0.25)
    assert verdict.tau is not None
    wide.add_patch(plt.Circle(tuple(verdict.value), verdict.tau, fill=False, ls="--", color=COLOURS["tq"]))
    wide.set(title="what was sent (dashed: TQ's tau)", xlim=(-4, 10.5), ylim=(-5, 9.5))
    wide.set_ylabel("second number sent")
    close.set(xlim=(-0.8, 2.8), ylim=(-0.6, 3.0), title="a closer look")
    legend = close.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False)
    legend.legend_handles[2].set_sizes([120])  # the cross would cover its neighbours
    for name, title in RULES.items():
        print(f"{title:6} {float((parse(name, f=F)(x) - truth).norm()):.2f} from the mean of the honest")
    save(figure, "landing")


if __name__ == "__main__":
    main()
