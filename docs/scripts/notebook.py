"""docs/notebook.ipynb: the first steps with their output. Needs nbclient, ipykernel and matplotlib.

python docs/scripts/notebook.py
"""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

PAGE = Path(__file__).parents[1] / "notebook.ipynb"
CELLS = [
    "# First steps, with output",
    "Twenty clients send vectors of a thousand numbers. Six of them lie: they all send the honest mean turned round and"
    " stretched.",
    """
import torch

import robagg as ra
from robagg.attacks import IPM, View

torch.manual_seed(0)
n, f, d = 20, 6, 1000
target = torch.randn(d)  # what everybody should agree on
honest = target + torch.randn(n - f, d)
liars, _ = IPM().craft(View(honest, None, n=n, f=f), {})
x = torch.cat([honest, liars])
x.shape
""",
    "How far is each rule from the mean of the honest clients?",
    """
names = ["mean", "cm", "tm", "krum", "rfa", "mca", "huber", "tq", "nnm >> cm"]
for name in names:
    error = (ra.parse(name, f=f)(x) - honest.mean(0)).norm()
    print(f"{name:10} {error:7.2f}")
""",
    "TQ lands on it. Its verdict says why: the liars are far outside its radius of belief.",
    "print(ra.TQ(f=f).explain(x))",
    "Now the liars come closer. They stand together at a distance from the honest mean that grows from left to right.",
    """
import matplotlib.pyplot as plt

distances = [5, 10, 20, 30, 40, 60, 100, 200]
side = torch.nn.functional.normalize(torch.randn(d), dim=0)
looks = {
    "mean": {"color": "#666666", "marker": "P", "linestyle": ":"},
    "cm": {"color": "#56B4E9", "marker": "v", "linestyle": "--"},
    "huber": {"color": "#D55E00", "marker": "s"},
    "tq": {"color": "#0072B2", "marker": "*", "linewidth": 3, "markersize": 11},
}
for name, look in looks.items():
    off = []
    for far in distances:
        together = (honest.mean(0) + far * side).expand(f, d)
        value = ra.parse(name, f=f)(torch.cat([honest, together]))
        off.append(float((value - honest.mean(0)).norm()))
    plt.plot(distances, off, label=name, **look)
plt.xlabel("distance of the liars (honest clients: about 31)")
plt.ylabel("error of the rule")
plt.xscale("log")
plt.xticks(distances, distances)
plt.minorticks_off()
plt.ylim(0, 60)
plt.legend()
plt.show()
""",
    "So TQ is exact when liars are far, and follows them when they are as near as the honest clients. No rule is best"
    " everywhere: that is why the library has many, and a lab to compare them in.",
    "Training under attack: a small network, ten clients, three liars.",
    """
from torch import nn

data = torch.randn(1000, 8)
labels = (data[:, 0] > data[:, 1]).long()
clients = [(data[i::10], labels[i::10]) for i in range(10)]
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
how = {"rounds": 40, "momentum": 0.9, "rate": 0.3, "evaluate_every": 4}
for rule in ["mean", "huber", "tq"]:
    result = ra.train(model, clients, rule, "ipm", f=3, test=(data, labels), **how)
    rounds, accuracy = zip(*result.curve, strict=True)
    plt.plot(rounds, accuracy, label=rule, **looks[rule])
plt.xlabel("round")
plt.ylabel("accuracy, %")
plt.legend()
plt.show()
""",
    "A rule of your own is a few lines. It sees distances and says how much each client counts.",
    """
from dataclasses import dataclass

from robagg import GramRule, Sketch
from robagg import F
from robagg import Weights


@dataclass(frozen=True)
class Nearest(GramRule):
    \"\"\"The mean of the n-f clients nearest to the median.\"\"\"

    f: F = None
    needs_median = True

    def weights(self, sketch: Sketch) -> Weights:
        keep = sketch.n - sketch.f
        distances = sketch.squared_distances(sketch.centre())
        nearest = distances.sort(stable=True).indices[:keep]
        share = torch.zeros_like(distances).index_fill(0, nearest, 1 / keep)
        return Weights(sketch.on_rows(share))


x = torch.cat([honest, liars])
off = (Nearest(f=f)(x) - honest.mean(0)).norm()
print(f"{off:.2f} from the honest mean")
print(Nearest(f=f).explain(x).not_believed)
""",
]


def main() -> None:
    new = nbformat.v4
    cells = []
    for k, text in enumerate(CELLS):
        prose = "\n" not in text and not text.startswith("print(")
        cell = new.new_markdown_cell(text) if prose else new.new_code_cell(text.strip())
        cell["id"] = f"cell-{k}"
        cells.append(cell)
    book = new.new_notebook(cells=cells)
    NotebookClient(book, timeout=600, kernel_name="python3").execute()
    for cell in book.cells:
        cell.metadata.pop("execution", None)  # the time of day is not news
    book.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(book, PAGE)
    print(PAGE)


if __name__ == "__main__":
    main()
