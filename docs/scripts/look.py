"""How the pictures of the documentation look: one colour and one mark a rule, told apart without colours too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from robagg.paper.figures import STYLES

IMAGES = Path(__file__).parents[1] / "images"
CHAINS = {"nnm >> cm": ("#009E73", "o"), "nnm >> tq": ("#000000", "D"), "nnm >> tq(floor=False)": ("#999999", "d")}
LOOKS = {name.lower(): look for name, look in STYLES.items()} | CHAINS
COLOURS = {name: colour for name, (colour, _) in LOOKS.items()}
MARKS = {name: mark for name, (_, mark) in LOOKS.items()}
DASHES = {"cm": "--", "mean": ":", "krum": "-."}

mpl.use("Agg")
mpl.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "lines.markersize": 7})


def line(name: str) -> dict[str, Any]:
    """How a rule's line is drawn; TQ's is broad and below the others, so that none hides another."""
    broad = {"linewidth": 3.4, "markersize": 12, "zorder": 1} if name == "tq" else {"zorder": 2}
    return {"color": COLOURS[name], "marker": MARKS[name], "linestyle": DASHES.get(name, "-"), **broad}


def save(figure: Figure, name: str) -> None:
    """Write the picture beside the pages, without the date, so that the same numbers give the same file."""
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / f"{name}.png", dpi=130, bbox_inches="tight", metadata={"Software": None})
    print(IMAGES / f"{name}.png")
