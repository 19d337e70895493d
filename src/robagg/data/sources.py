"""The public data sets: their files, where they live, and the MD5s they were published with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class File:
    """One published file.

    Args:
        name: its name, `.gz` included.
        holds: what is in it, for messages: `training images`.
        shape: of the uint8 array in it, items first.
        md5: of the file as published.
        raw_md5: of its content un-gzipped (the same as `md5` for a file that is not gzipped).
    """

    name: str
    holds: str
    shape: tuple[int, ...]
    md5: str
    raw_md5: str

    @property
    def header(self) -> int:
        """Bytes before the data: an IDX file's magic and one length per dimension; a CIFAR batch has none."""
        return 4 + 4 * len(self.shape) if "-idx" in self.name else 0


@dataclass(frozen=True)
class Source:
    """A data set in files: training first, test last; images before labels.

    Args:
        name: the name users give.
        files: what a complete folder holds.
        folders: where it is looked for below the root; downloads go into the first.
        homes: addresses that end in a slash; each is tried in turn.
        mean, std: of each channel, for pixels in [0, 1].
        archive: the one file all others come in, as (name, MD5), if they do.
        classes: number of labels.

    Example:
        >>> SOURCES["mnist"].files[0].shape
        (60000, 28, 28)
    """

    name: str
    files: tuple[File, ...]
    folders: tuple[str, ...]
    homes: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    archive: tuple[str, str] | None = None
    classes: int = 10


def _idx(prefix: str, holds: str, shape: tuple[int, ...], md5: str, raw_md5: str) -> File:
    kind = "images-idx3" if len(shape) == 3 else "labels-idx1"
    return File(f"{prefix}-{kind}-ubyte.gz", holds, shape, md5, raw_md5)


def _batch(name: str, holds: str, md5: str) -> File:
    return File(f"{name}.bin", holds, (10000, 3073), md5, md5)


_MNIST = Source(
    name="mnist",
    files=(
        _idx("train", "training images", (60000, 28, 28), "f68b3c2dcbeaaa9fbdd348bbdeb94873",
             "6bbc9ace898e44ae57da46a324031adb"),
        _idx("train", "training labels", (60000,), "d53e105ee54ea40749a09fcbcd1e9432",
             "a25bea736e30d166cdddb491f175f624"),
        _idx("t10k", "test images", (10000, 28, 28), "9fb629c4189551a2d022fa330f9573f3",
             "2646ac647ad5339dbf082846283269ea"),
        _idx("t10k", "test labels", (10000,), "ec29112dd5afa0611ce80d1b7f02629c",
             "27ae3e4e09519cfbb04c329615203637"),
    ),
    folders=("mnist",),
    homes=(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    mean=(0.1307,),
    std=(0.3081,),
)  # fmt: skip

_FASHION = Source(
    name="fashion-mnist",
    files=(
        _idx("train", "training images", (60000, 28, 28), "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
             "f4a8712d7a061bf5bd6d2ca38dc4d50a"),
        _idx("train", "training labels", (60000,), "25c81989df183df01b3e8a0aad5dffbe",
             "9018921c3c673c538a1fc5bad174d6f9"),
        _idx("t10k", "test images", (10000, 28, 28), "bef4ecab320f06d8554ea6380940ec79",
             "8181f5470baa50b63fa0f6fddb340f0a"),
        _idx("t10k", "test labels", (10000,), "bb300cfdad3c16e7a12a480ee83cd310",
             "15d484375f8d13e6eb1aabb0c3f46965"),
    ),
    folders=("fashion-mnist",),
    homes=(
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    ),
    mean=(0.1307,),  # MNIST's numbers, as the paper normalises both sets
    std=(0.3081,),
)  # fmt: skip

_CIFAR10 = Source(
    name="cifar10",
    files=(
        _batch("data_batch_1", "first training batch", "5dd7e06a14cb22eb9f671a540d1b7c25"),
        _batch("data_batch_2", "second training batch", "5ea93a67294ea407fff1d09f752e9692"),
        _batch("data_batch_3", "third training batch", "942cd6a4bcdd0dd3c604fbe906cb4421"),
        _batch("data_batch_4", "fourth training batch", "ae636b3ba5c66a11e91e8cb52e771fcb"),
        _batch("data_batch_5", "fifth training batch", "53f37980c15c3d472c316c40844f3f0d"),
        _batch("test_batch", "test batch", "803d5f7f4d78ea53de84dbe85f74fb6d"),
    ),
    folders=("cifar10", "cifar-10-batches-bin", "cifar10/cifar-10-batches-bin"),
    homes=("https://www.cs.toronto.edu/~kriz/",),
    mean=(0.4914, 0.4822, 0.4465),
    std=(0.2023, 0.1994, 0.2010),
    archive=("cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530"),
)

SOURCES: dict[str, Source] = {source.name: source for source in (_MNIST, _FASHION, _CIFAR10)}
