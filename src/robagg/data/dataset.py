"""A data set in memory: normalised images and labels, for training and for the test."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from robagg._core.registry import fold, unknown
from robagg.data.files import locate_root, read_file
from robagg.data.optional import require
from robagg.data.sources import SOURCES, Source

NAMES = ("cifar10", "digits", "fashion-mnist", "mnist")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images and labels, split into training and test as published.

    Args:
        name: one of `NAMES`, or a name of your own.
        train_x: float32 (N, C, H, W), normalised.
        train_y: int64 (N,).
        test_x: float32 (M, C, H, W), normalised in the same way.
        test_y: int64 (M,).
        classes: number of labels; they are 0 to classes - 1.

    Example:
        >>> x, y = torch.zeros(4, 1, 2, 2), torch.tensor([0, 1, 0, 1])
        >>> Dataset("mine", x, y, x, y, classes=2)
        Dataset('mine', train=4, test=4, shape=(1, 2, 2), classes=2)
    """

    name: str
    train_x: Tensor
    train_y: Tensor
    test_x: Tensor
    test_y: Tensor
    classes: int

    @property
    def shape(self) -> tuple[int, ...]:
        """(C, H, W) of one image."""
        return tuple(self.train_x.shape[1:])

    def to(self, device: torch.device | str) -> Dataset:
        """The same data on another device."""
        train_x, train_y, test_x, test_y = self.train_x, self.train_y, self.test_x, self.test_y
        return Dataset(
            self.name, train_x.to(device), train_y.to(device), test_x.to(device), test_y.to(device), self.classes
        )

    def __repr__(self) -> str:
        sizes = f"train={len(self.train_y)}, test={len(self.test_y)}"
        return f"Dataset({self.name!r}, {sizes}, shape={self.shape}, classes={self.classes})"


def load(name: str, root: str | Path | None = None) -> Dataset:
    """Read a data set from disk and check it against its published MD5s; nothing is ever downloaded here.

    Args:
        name: mnist, fashion-mnist, cifar10 or digits (which comes with scikit-learn).
        root: folder that holds mnist/, fashion-mnist/ and cifar10/; else $ROBAGG_DATA, else the user's cache folder.

    Raises:
        FileNotFoundError: a file is missing; the message says where it was looked for and how to download it.
        ValueError: a file is not the published one; the message says in what it differs.

    Example:
        >>> load("digits")
        Dataset('digits', train=1438, test=359, shape=(1, 8, 8), classes=10)
    """
    name = find_name(name)
    if name == "digits":
        return _load_digits()
    source, place = SOURCES[name], locate_root(root)
    if source.archive is not None:
        rows = [read_file(source, file, place) for file in source.files]
        train, test = np.concatenate(rows[:-1]), rows[-1]
        pairs = [(part[:, 1:].reshape(-1, 3, 32, 32), part[:, 0]) for part in (train, test)]
    else:
        x, y, test_x, test_y = (read_file(source, file, place) for file in source.files)
        pairs = [(x[:, None], y), (test_x[:, None], test_y)]
    (train_x, train_y), (test_x, test_y) = pairs
    return Dataset(
        name,
        _normalise(train_x, source),
        torch.from_numpy(train_y.astype(np.int64)),
        _normalise(test_x, source),
        torch.from_numpy(test_y.astype(np.int64)),
        source.classes,
    )


def find_name(name: str) -> str:
    """The name of a data set as it is listed; case, `-` and `_` do not matter.

    Example:
        >>> find_name("Fashion_MNIST")
        'fashion-mnist'
    """
    known = {fold(listed): listed for listed in NAMES}
    if fold(name) not in known:
        raise ValueError(unknown("data set", name, NAMES, known))
    return known[fold(name)]


def _normalise(pixels: NDArray[np.uint8], source: Source) -> Tensor:
    """(N, C, H, W) bytes to float32, in place: CIFAR-10 takes 600 MB as it is."""
    x = torch.from_numpy(pixels.astype(np.float32)).div_(255)
    mean, std = (torch.tensor(v).view(-1, 1, 1) for v in (source.mean, source.std))
    return x.sub_(mean).div_(std)


def _load_digits() -> Dataset:
    bunch = require("sklearn.datasets", "scikit-learn", "the digits data set").load_digits()
    x = torch.from_numpy(bunch.images.astype(np.float32)).div_(16).unsqueeze(1)
    y = torch.from_numpy(bunch.target.astype(np.int64))
    # Every fifth image of each label is for the test: stratified, and the same whatever the seed.
    test = torch.zeros(len(y), dtype=torch.bool)
    for label in range(10):
        test[(y == label).nonzero().flatten()[2::5]] = True
    return Dataset("digits", x[~test], y[~test], x[test], y[test], classes=10)
