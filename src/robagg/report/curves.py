"""Accuracy over the rounds: one panel per attack, one line per rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from robagg.data.optional import require

Curve = Sequence[tuple[int, float]]
# Okabe and Ito's colours, which the colour-blind can tell apart; with markers, for print without colour.
COLOURS = ("#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def draw_curves(
    panels: Mapping[str, Mapping[str, Curve]], path: Path, *, title: str = "", emphasise: str | None = None
) -> Path:
    """Draw curves {panel: {label: [(round, accuracy), ...]}} to a file; `emphasise` names the thickest line."""
    figures = require("matplotlib.figure", "matplotlib", "drawing curves")
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure = figures.Figure(figsize=(5.2 * columns, 3.4 * rows + 0.8), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    labels = list(dict.fromkeys(label for panel in panels.values() for label in panel))
    for at, (name, panel) in zip(axes.flat, panels.items(), strict=False):
        for label, curve in panel.items():
            k = labels.index(label)
            at.plot(
                [t for t, _ in curve],
                [accuracy for _, accuracy in curve],
                label=label,
                color=COLOURS[k % len(COLOURS)],
                marker=MARKERS[k % len(MARKERS)],
                markersize=4,
                linewidth=2.8 if label == emphasise else 1.3,
                zorder=3 if label == emphasise else 2,
            )
        at.set_title(name.upper())
        at.set_ylim(0, 100)
        at.grid(alpha=0.3)
    for at in axes[-1]:
        at.set_xlabel("round")
    for at in axes[:, 0]:
        at.set_ylabel("test accuracy (%)")
    for at in axes.flat[len(panels) :]:
        at.set_visible(False)
    handles, names = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(labels), frameon=False)
    if title:
        figure.suptitle(title)
    figure.savefig(path, dpi=130)
    return path
