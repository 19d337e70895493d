"""AG News: titles and first sentences of news of four kinds, read from the published CSV files."""

from __future__ import annotations

import csv
import hashlib
import io
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from robagg.data.download import retrieve
from robagg.data.files import locate_root, read_checked

FOLDERS = ("ag_news", "agnews")
HOME = "https://raw.githubusercontent.com/mhjabreel/CharCnn_Keras/master/data/ag_news_csv/"
CLASSES = ("World", "Sports", "Business", "Sci/Tech")
TEST = "test.csv"
TRAIN = {"official": "train.csv", "subset20k": "train_subset20k.csv"}
"""Which training rows there are to choose from: the 120,000 published ones, or 20,000 of them, 5,000 a class."""
MD5 = {
    "train.csv": "b1a00f826fdfbd249f79597b59e1dc12",
    "test.csv": "d52ea96a97a2d943681189a97654912d",
    "train_subset20k.csv": "80daf6e55dfc88f8eb561081b39d2d2d",
}
"""Of the content, un-gzipped."""
ORDER = 20_000
"""The seed by which training rows are shuffled: a file may be sorted by label."""


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts and labels; the digest stands for all of them and their order."""

    train: list[str]
    train_y: Tensor
    test: list[str]
    test_y: Tensor
    digest: str


def read_texts(rows: str = "official", root: str | Path | None = None) -> Texts:
    """Read and check AG News; a text is the title, a full stop and the description.

    Args:
        rows: "official" (120,000 training rows) or "subset20k" (20,000 of them); the test set is the published one.
        root: folder that holds ag_news/; else $ROBAGG_DATA, else the user's cache folder.

    Raises:
        FileNotFoundError: a file is missing; the message says where it was looked for and how to get it.
        ValueError: a file is not the one it should be.
    """
    content = {name: _read(name, root) for name in (_choose(rows), TEST)}
    (train, train_y), (test, test_y) = (_parse(text) for text in content.values())
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(ORDER))
    digest = hashlib.sha256(f"{ORDER}".encode())
    for raw in content.values():
        digest.update(hashlib.sha256(raw).digest())
    return Texts([train[i] for i in order.tolist()], train_y[order], test, test_y, digest.hexdigest())


def find_rows(root: str | Path | None = None) -> list[str]:
    """Which training rows lie there with the test set, the published ones first; nothing is read."""
    if _locate(TEST, root) is None:
        return []
    return [rows for rows, name in TRAIN.items() if _locate(name, root) is not None]


def fetch_agnews(root: str | Path | None = None, progress: bool = True) -> Path:
    """Download the published training and test rows, check them, and say where they lie."""
    folder = locate_root(root) / FOLDERS[0]
    for name in (TRAIN["official"], TEST):
        if _locate(name, root) is None:
            retrieve([HOME], name, MD5[name], folder, "agnews", progress)
        _read(name, root)
    return folder


def _choose(rows: str) -> str:
    if rows not in TRAIN:
        raise ValueError(f"rows of AG News must be one of {', '.join(TRAIN)}, got {rows!r}")
    return TRAIN[rows]


def _locate(name: str, root: str | Path | None) -> Path | None:
    places = [locate_root(root) / folder / f"{name}{end}" for folder in FOLDERS for end in ("", ".gz")]
    return next((path for path in places if path.is_file()), None)


def _read(name: str, root: str | Path | None) -> bytes:
    """The content of a file, gzipped or not, checked against its MD5."""
    path = _locate(name, root)
    if path is None:
        there = find_rows(root)
        rest = f"; there are other rows: ask for agnews(rows={there[0]!r})" if there else ""
        raise FileNotFoundError(
            f"cannot read AG News without {name} or {name}.gz: looked in {locate_root(root) / FOLDERS[0]}. "
            f"`robagg data get agnews` downloads the published rows{rest}"
        )
    return read_checked(path, {MD5[name]}, f"{name} of AG News")


def _parse(raw: bytes) -> tuple[list[str], Tensor]:
    texts, labels = [], []
    for row in csv.reader(io.StringIO(raw.decode("utf-8"))):
        label, title, description = row
        texts.append(f"{title}. {description}")
        labels.append(int(label) - 1)
    return texts, torch.tensor(labels, dtype=torch.int64)
