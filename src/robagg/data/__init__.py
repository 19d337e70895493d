"""Data sets: download, check, read, augment, count."""

from robagg.data.augment import crop_and_flip
from robagg.data.counts import describe, draw, histogram
from robagg.data.dataset import NAMES, Dataset, load
from robagg.data.download import fetch
from robagg.data.files import locate_root

__all__ = [
    "NAMES",
    "Dataset",
    "crop_and_flip",
    "describe",
    "draw",
    "fetch",
    "histogram",
    "load",
    "locate_root",
]
