"""The figures of a profile: accuracy over strength, a figure for each family, a line for each rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from robagg.data.optional import require
from robagg.profile.families import Family
from robagg.profile.gather import Found
from robagg.report.curves import COLOURS, MARKERS

ORDER = (5, 6, 3, 7, 2, 0, 1)
"""The colours of `curves` that differ most come first; yellow, which fades on white, does not come."""


def draw_families(found: Found, folder: Path) -> list[Path]:
    """A figure for each family of which the store has two strengths or more."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for family in found.profile.families:
        if any(len(found.points.get((rule, family.name), ())) > 1 for rule in found.profile.rules):
            path = folder / f"{family.name}.png"
            # Without the version of what drew it, so that the same numbers give the same file.
            _draw(found, family).savefig(path, dpi=110, metadata={"Software": None})
            drawn.append(path)
    return drawn


def _draw(found: Found, family: Family) -> Any:
    profile = found.profile
    # A figure of its own, not pyplot's: drawing must not touch a caller's backend or open figures.
    figure = require("matplotlib.figure", "matplotlib", "drawing figures").Figure(
        figsize=(7, 3.9), layout="constrained"
    )
    axes = figure.subplots()
    for k, rule in enumerate(profile.rules):
        points = found.points.get((rule, family.name), ())
        colour, marker = COLOURS[ORDER[k % len(ORDER)]], MARKERS[k % len(MARKERS)]
        if (worst := found.find_worst(rule, family.name)) is not None:
            axes.plot(worst.strength, worst.mean, "o", color=colour, markersize=13, fillstyle="none", zorder=4)
        x, means = [point.strength for point in points], [point.mean for point in points]
        axes.plot(x, means, color=colour, marker=marker, markersize=5, linewidth=1.6, label=rule, zorder=3)
        for point in points:  # each seed by itself, since a rule that falls on some falls far
            seeds = point.cell.values
            axes.plot([point.strength] * len(seeds), seeds, color=colour, marker=".", markersize=4, alpha=0.5, zorder=2)
        if (optimal := _find_optimal(found, rule)) is not None:
            axes.axhline(optimal, color=colour, linestyle=":", linewidth=1.3, zorder=1)
    axes.set(
        xscale="log", ylim=(-2, 102), xlabel=f"strength {family.parameter}", ylabel="accuracy, %", title=family.title
    )
    axes.set_xticks(family.strengths, [f"{value:g}" for value in family.strengths], minor=False)
    axes.set_xticks([], minor=True)
    axes.grid(alpha=0.3)
    handles, labels = axes.get_legend_handles_labels()
    if any(_find_optimal(found, rule) is not None for rule in profile.rules):
        (dotted,) = axes.plot([], [], color="black", linestyle=":", linewidth=1.3)
        handles, labels = [*handles, dotted], [*labels, "under the optimal\nattacker"]
    figure.legend(handles, labels, loc="outside right upper", frameon=False)
    return figure


def _find_optimal(found: Found, rule: str) -> float | None:
    """The least mean under any of the optimal attackers."""
    names = {name for r, name in found.points if r == rule and name.startswith("optimal")}
    worst = [point.mean for name in names if (point := found.find_worst(rule, name)) is not None]
    return min(worst, default=None)
