"""How the labels lie over the clients: counted, printed, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from robagg.data.optional import require

# Paul Tol's muted scheme: ten colours that stay apart for colour-blind readers.
_COLOURS = (
    "#332288",
    "#88CCEE",
    "#44AA99",
    "#117733",
    "#999933",
    "#DDCC77",
    "#CC6677",
    "#882255",
    "#AA4499",
    "#BBBBBB",
)


def histogram(labels: Tensor, shards: Sequence[Tensor], classes: int) -> Tensor:
    """How many samples of each label each client holds: int64 (n, classes).

    Args:
        labels: (N,) integers in 0 to classes - 1.
        shards: n index tensors.
        classes: number of labels.

    Example:
        >>> histogram(torch.tensor([0, 1, 1]), [torch.tensor([0, 1]), torch.tensor([2])], classes=2).tolist()
        [[1, 1], [0, 1]]
    """
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise ValueError(f"labels must lie in 0 to {classes - 1}, got {int(labels.min())} to {int(labels.max())}")
    labels = labels.cpu()
    return torch.stack([torch.bincount(labels[shard.cpu()], minlength=classes) for shard in shards])


def describe(labels: Tensor, shards: Sequence[Tensor], classes: int, *, f: int = 0) -> str:
    """A table in plain text: each client's size and label counts; the last f clients are marked as Byzantine.

    Example:
        >>> print(describe(torch.tensor([0, 1, 1]), [torch.tensor([0, 1]), torch.tensor([2])], classes=2, f=1))
        client       size  0  1
        0               2  1  1
        1 Byzantine     1  0  1
    """
    counts = histogram(labels, shards, classes)
    rows = [["client", "size", *map(str, range(classes))]]
    for i, count in enumerate(counts.tolist()):
        mark = " Byzantine" if i >= len(shards) - f else ""
        rows.append([f"{i}{mark}", str(sum(count)), *map(str, count)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    )


def draw(
    labels: Tensor, shards: Sequence[Tensor], classes: int, path: str | Path, *, f: int = 0, title: str = ""
) -> Path:
    """A PNG of stacked bars, one per client, with one colour per label; the last f clients are hatched as Byzantine.

    Args:
        labels: (N,) integers in 0 to classes - 1.
        shards: n index tensors.
        classes: number of labels.
        path: the file to write; its folder is made if need be.
        f: how many of the last clients are Byzantine.
        title: printed above; nothing by default.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> draw(torch.tensor([0, 1]), [torch.tensor([0]), torch.tensor([1])], 2, folder + "/split.png").name
        'split.png'
    """
    matplotlib = require("matplotlib", "matplotlib", "drawing a split")
    # A figure of its own, not pyplot's: drawing must not touch a caller's backend or open figures.
    figure = require("matplotlib.figure", "matplotlib", "drawing a split").Figure(layout="constrained")
    colours: Any = _COLOURS
    if classes > len(_COLOURS):
        colours = matplotlib.colormaps["cividis"].resampled(classes)(range(classes))
    counts = histogram(labels, shards, classes)
    n, h = len(shards), len(shards) - f
    figure.set_size_inches(max(5.0, 1.8 + 0.34 * n), 3.8)
    axes = figure.subplots()
    bottom = torch.zeros(n, dtype=torch.int64)
    for label in range(classes):
        bars = axes.bar(
            range(n), counts[:, label].tolist(), bottom=bottom.tolist(), color=colours[label], width=0.8,
            edgecolor="white", linewidth=0.5, label=str(label),
        )  # fmt: skip
        for bar in bars[h:]:
            bar.set_hatch("////")
        bottom += counts[:, label]
    if f:
        axes.axvspan(h - 0.5, n - 0.5, color="0.9", zorder=0)
        axes.text(h - 0.5 + f / 2, 1.01, "Byzantine", transform=axes.get_xaxis_transform(), ha="center")
    axes.set_xlim(-0.6, n - 0.4)
    axes.set_xticks(range(0, n, 1 + n // 40))
    axes.set_xlabel("client")
    axes.set_ylabel("samples")
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, loc="left", pad=18 if f else 6)
    figure.legend(title="label", loc="outside right center", frameon=False, reverse=True, ncols=1 + classes // 16)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, format="png")
    return path
