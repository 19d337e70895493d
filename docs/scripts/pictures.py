"""The pictures of the documentation about rules: docs/images/distance.png, landing.png and verdict.png.

python docs/scripts/pictures.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import torch
from matplotlib.figure import Figure

from robagg import parse
from robagg.paper.figures import STYLES

IMAGES = Path(__file__).parents[1] / "images"
LOOKS = {name.lower(): look for name, look in STYLES.items()}
LOOKS |= {"nnm >> cm": ("#009E73", "o"), "nnm >> tq": ("#000000", "D"), "nnm >> tq(floor=False)": ("#999999", "d")}
DASHES = {"cm": "--", "mean": ":", "krum": "-."}

mpl.use("Agg")
mpl.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "lines.markersize": 7})


def line(name: str) -> dict[str, Any]:
    """How a rule's line is drawn; TQ's is broad and below the others, so that none hides another."""
    colour, mark = LOOKS[name]
    broad = {"linewidth": 3.4, "markersize": 12, "zorder": 1} if name == "tq" else {"zorder": 2}
    return {"color": colour, "marker": mark, "linestyle": DASHES.get(name, "-"), **broad}


def save(figure: Figure, name: str) -> None:
    """Write the picture beside the pages, without the date, so that the same numbers give the same file."""
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / f"{name}.png", dpi=130, bbox_inches="tight", metadata={"Software": None})
    print(IMAGES / f"{name}.png")


def main() -> None:
    draw_distance({"tq": "TQ", "huber": "Huber", "cm": "CM", "krum": "Krum", "mean": "Mean"})
    draw_landing({name.lower(): name for name in ("TQ", "Huber", "RFA", "MCA", "Krum", "CM", "TM", "Mean")}, f=5)
    draw_verdict({"mean": "Mean", "huber": "Huber", "tq": "TQ", "krum": "Krum"}, n=12, f=3)


def draw_distance(rules: dict[str, str]) -> None:
    """How far off each rule is when the Byzantine clients stand together at a distance."""
    distances = [0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0]
    figure, axis = plt.subplots(figsize=(6.4, 3.8))
    for name, title in rules.items():
        errors = [measure_error(name, far) for far in distances]
        print(f"{title:6}", " ".join(f"{error:.2f}" for error in errors))
        axis.plot(distances, errors, **line(name), label=title)
    axis.set(
        xscale="log",
        xlabel="distance of the Byzantine clients, in honest spreads",
        ylabel="error of the rule",
        ylim=(0, 2.2),
    )
    axis.set_xticks([0.25, 0.5, 1, 2, 5, 10, 30], ["0.25", "0.5", "1", "2", "5", "10", "30"])
    axis.set_xticks([], minor=True)
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, handlelength=3.5)
    save(figure, "distance")


def measure_error(name: str, far: float, n: int = 20, f: int = 6, d: int = 100, draws: int = 20) -> float:
    """The rule's distance to the honest mean, in units of the honest spread, as a mean over draws."""
    off = 0.0
    for seed in range(draws):
        source = torch.Generator().manual_seed(seed)
        honest = torch.randn(n - f, d, generator=source, dtype=torch.float64)
        spread = (honest - honest.mean(0)).norm(dim=1).square().mean().sqrt()
        side = torch.nn.functional.normalize(torch.ones(d, dtype=torch.float64), dim=0)
        x = torch.cat([honest, (honest.mean(0) + far * spread * side).expand(f, d)])
        off += float((parse(name, f=f)(x) - honest.mean(0)).norm() / spread) / draws
    return off


def draw_landing(rules: dict[str, str], f: int) -> None:
    """Where each rule lands in the plane when five of seventeen points are Byzantine."""
    source = torch.Generator().manual_seed(7)
    honest = torch.randn(12, 2, generator=source, dtype=torch.float64)
    byzantine = torch.tensor([9.0, 6.0], dtype=torch.float64) + 0.4 * torch.randn(f, 2, generator=source)
    x = torch.cat([honest, byzantine])
    truth = honest.mean(0)
    figure, (wide, close) = plt.subplots(1, 2, figsize=(9.5, 4.4))
    verdict = parse("tq", f=f).explain(x)
    for axis in (wide, close):
        axis.scatter(*honest.T, color="#718096", s=26, label="honest clients")
        axis.scatter(*byzantine.T, color="#b3261e", s=34, marker="^", label="malicious clients")
        axis.scatter(*truth, color="black", marker="+", s=420, linewidths=2, label="mean of the honest", zorder=3)
        for name, title in rules.items():
            colour, mark = LOOKS[name]
            look = {"color": colour, "marker": mark, "s": 230 if name == "tq" else 100}
            axis.scatter(*parse(name, f=f)(x), **look, edgecolors="white", label=title, zorder=4)
        axis.set(aspect="equal", xlabel="first number sent")
        axis.grid(alpha=0.25)
    assert verdict.tau is not None
    wide.add_patch(plt.Circle(tuple(verdict.value), verdict.tau, fill=False, ls="--", color=LOOKS["tq"][0]))
    wide.set(title="what was sent (dashed: TQ's tau)", xlim=(-4, 10.5), ylim=(-5, 9.5))
    wide.set_ylabel("second number sent")
    close.set(xlim=(-0.8, 2.8), ylim=(-0.6, 3.0), title="a closer look")
    legend = close.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False)
    legend.legend_handles[2].set_sizes([120])  # the cross would cover its neighbours
    for name, title in rules.items():
        print(f"{title:6} {float((parse(name, f=f)(x) - truth).norm()):.2f} from the mean of the honest")
    save(figure, "landing")


def draw_verdict(rules: dict[str, str], n: int, f: int) -> None:
    """What a verdict says about each client, as bars."""
    source = torch.Generator().manual_seed(1)
    x = torch.randn(n, 200, generator=source)
    x[n - f :] = 4 + x[n - f :]  # three pull to the same side
    figure, axes = plt.subplots(1, len(rules), figsize=(10, 2.9), sharey=True)
    for axis, (name, title) in zip(axes, rules.items(), strict=True):
        verdict = parse(name, f=f).explain(x)
        bars = axis.bar(range(n), 100 * verdict.weights, color=LOOKS[name][0])
        for bar in bars[n - f :]:
            bar.set(hatch="///", edgecolor="black")
        for i in verdict.not_believed:
            axis.text(i, 100 * float(verdict.weights[i]) + 0.8, "x", ha="center", color="#b3261e", fontweight="bold")
        axis.set(title=title, xlabel="client (the last three lie)", xticks=range(0, n, 2))
    axes[0].set_ylabel("weight in the value, %")
    axes[0].set_ylim(0, 30)
    chosen = int(verdict.weights.argmax())  # Krum's one row
    axes[-1].text(chosen, 27, "100 %", ha="center", va="top", color="black", fontsize=8, rotation=90)
    save(figure, "verdict")


if __name__ == "__main__":
    main()
