"""Data sets (download, check, read) and splits (who holds what)."""

from robagg.data.augment import crop_and_flip
from robagg.data.counts import describe, draw, histogram
from robagg.data.dataset import NAMES, Dataset, load
from robagg.data.download import fetch
from robagg.data.files import locate_root
from robagg.data.split import Split
from robagg.data.splits import IID, Dirichlet, OneLabel, Rho
from robagg.registry import Registry

# Bound after the folder of the same name was imported above, so that `robagg.data.splits` is this.
splits: Registry[Split] = Registry("split", Split, "robagg.data.splits")  # type: ignore[type-abstract]

__all__ = [
    "IID",
    "NAMES",
    "Dataset",
    "Dirichlet",
    "OneLabel",
    "Rho",
    "Split",
    "crop_and_flip",
    "describe",
    "draw",
    "fetch",
    "histogram",
    "load",
    "locate_root",
    "splits",
]
