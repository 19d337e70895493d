"""How the pictures of the documentation look: one colour and one mark a rule, told apart without colours too."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

IMAGES = Path(__file__).parents[1] / "images"
COLOURS = {
    "tq": "#0072b2",
    "huber": "#d55e00",
    "rfa": "#8a6d00",
    "mca": "#009e73",
    "krum": "#a3437e",
    "cm": "#3d6fd9",
    "tm": "#6b4fa0",
    "nnm": "#009e73",
    "mean": "#444444",
}
MARKS = {"tq": "*", "huber": "s", "rfa": "^", "mca": "D", "krum": "X", "cm": "v", "tm": "h", "nnm": "o", "mean": "P"}

mpl.use("Agg")
mpl.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "lines.markersize": 7})


def save(figure: Figure, name: str) -> None:
    """Write the picture beside the pages, without the date, so that the same numbers give the same file."""
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / f"{name}.png", dpi=130, bbox_inches="tight", metadata={"Software": None})
    print(IMAGES / f"{name}.png")
