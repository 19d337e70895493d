"""The pictures of docs/performance.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

FOLDER = Path(__file__).parents[1] / "docs" / "images"
COSTS = FOLDER / "performance.png"
GROWTH = FOLDER / "performance-growth.png"
BARS = ("mean", "cm", "tm", "krum", "rfa", "huber", "mca", "tq", "nnm >> tq")
LINES = {
    "mean": ("x.mean(0)", "#000000", "--", "o"),
    "cm": ("CM", "#E69F00", "-", "s"),
    "krum": ("Krum", "#009E73", "-", "^"),
    "tq": ("TQ", "#0072B2", "-", "D"),
}
"""Colours that the colour-blind can tell apart, and a mark of its own for each line."""


def draw_costs(cpu: dict[str, Any], gpu: dict[str, Any]) -> None:
    """The rules as multiples of the mean: `cpu` and `gpu` are the figures of n=20, d=1.2 million."""
    names = [rule for rule in BARS if rule in cpu["rules"] and f"{rule} (graph)" in gpu]
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    places = range(len(names))
    on_cpu = [cpu["rules"][rule]["ratio"] for rule in names]
    on_gpu = [gpu[f"{rule} (graph)"]["ratio"] for rule in names]
    axes.bar([p - 0.2 for p in places], on_cpu, 0.4, label="CPU, two cores", color="#0072B2")
    axes.bar([p + 0.2 for p in places], on_gpu, 0.4, label="H200, in a CUDA graph", color="#E69F00")
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xticks(list(places), names)
    axes.set_ylabel("time, as a multiple of x.mean(0)")
    axes.set_title("What robustness costs: n=20, d=1.2 million, float32")
    axes.legend(frameon=False)
    figure.savefig(COSTS, dpi=120)


def draw_growth(growth: dict[str, Any]) -> None:
    """Times of the mean against n, and time against d, all axes in powers."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    by_d = [row for row in growth["d"] if row["n"] == growth["d"][0]["n"]]
    others = growth["d"][len(by_d) :]
    for rule, (name, colour, dash, mark) in LINES.items():
        look = {"color": colour, "linestyle": dash, "marker": mark, "markersize": 4, "linewidth": 1.4}
        alone = {"color": colour, "marker": mark, "markersize": 5, "fillstyle": "none"}
        left.plot([row["n"] for row in growth["n"]], [_compare(row, rule) for row in growth["n"]], label=name, **look)
        right.plot([row["d"] for row in by_d], [row["ms"][rule] for row in by_d], label=name, **look)
        for row in growth["many"]:
            left.plot(row["n"], _compare(row, rule), **alone)
        for row in others:
            right.plot(row["d"], row["ms"][rule], **alone)
    rest = "".join(f"; hollow: n={row['n']}" for row in others)
    fewer = " and ".join(f"{row['d']:,}" for row in growth["many"])
    left.set(xlabel="clients n", ylabel="times the mean", title=f"d = {growth['n'][0]['d']:,}; hollow: {fewer}")
    right.set(xlabel="values d", ylabel="milliseconds", title=f"n = {by_d[0]['n']}{rest}")
    for axes in (left, right):
        axes.set(xscale="log", yscale="log")
        axes.grid(visible=True, which="major", linewidth=0.4)
        axes.spines[["top", "right"]].set_visible(False)
    ticks = [row["n"] for row in (*growth["n"], *growth["many"])]
    left.set_xticks(ticks, [str(n) for n in ticks])
    left.xaxis.minorticks_off()
    left.legend(frameon=False)
    figure.savefig(GROWTH, dpi=120)


def _compare(row: dict[str, Any], rule: str) -> float:
    """A rule's time in those of the mean of the same rows."""
    return float(row["ms"][rule] / row["ms"]["mean"])
