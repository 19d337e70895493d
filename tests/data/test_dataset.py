"""Reading data sets: the real ones where they are, small made-up ones for everything that can be wrong with a file."""

from __future__ import annotations

import gzip
import hashlib
import os
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from robagg.data import Dataset, load, locate_root
from robagg.data import sources as table
from robagg.data.sources import File, Source

TRAIN, TEST = 6, 4


def idx_bytes(array: np.ndarray) -> bytes:
    return struct.pack(f">I{array.ndim}I", 0x800 + array.ndim, *array.shape) + array.tobytes()


def make_file(name: str, holds: str, shape: tuple[int, ...], raw: bytes, packed: bool) -> tuple[File, bytes]:
    stored = gzip.compress(raw, mtime=0) if packed else raw
    md5 = [hashlib.md5(content).hexdigest() for content in (stored, raw)]
    return File(name, holds, shape, md5[0], md5[1]), stored


@pytest.fixture
def tiny_mnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Six training and four test images of 3x3, in place of MNIST's files; returns their folder."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "mnist"
    folder.mkdir()
    files = []
    for prefix, part, count in (("train", "training", TRAIN), ("t10k", "test", TEST)):
        for kind, shape in (("images", (count, 3, 3)), ("labels", (count,))):
            array = rng.integers(0, 256 if kind == "images" else 10, shape, dtype=np.uint8)
            name = f"{prefix}-{kind}-idx{len(shape)}-ubyte.gz"
            file, stored = make_file(name, f"{part} {kind}", shape, idx_bytes(array), packed=True)
            (folder / name).write_bytes(stored)
            files.append(file)
    source = Source("mnist", tuple(files), ("mnist",), ("http://unused/",), (0.1307,), (0.3081,))
    monkeypatch.setitem(table.SOURCES, "mnist", source)
    return folder


@pytest.fixture
def tiny_cifar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two images a batch in place of CIFAR-10's six batches; returns their folder."""
    rng = np.random.default_rng(1)
    folder = tmp_path / "cifar10"
    folder.mkdir()
    files = []
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        rows = rng.integers(0, 10, (2, 3073), dtype=np.uint8)
        file, stored = make_file(f"{name}.bin", name, (2, 3073), rows.tobytes(), packed=False)
        (folder / file.name).write_bytes(stored)
        files.append(file)
    real = table.SOURCES["cifar10"]
    source = Source("cifar10", tuple(files), real.folders, real.homes, real.mean, real.std, real.archive)
    monkeypatch.setitem(table.SOURCES, "cifar10", source)
    return folder


def real_root(name: str, first: str) -> Path:
    root = os.environ.get("ROBAGG_DATA")
    if not root or not (Path(root) / name / first).is_file():
        pytest.skip(f"{name} is not in $ROBAGG_DATA")
    return Path(root)


@pytest.mark.parametrize(("name", "mean"), [("mnist", 0.0), ("fashion-mnist", 0.5)])
def test_the_real_idx_sets_are_read_and_normalised(name: str, mean: float) -> None:
    data = load(name, real_root(name, "train-images-idx3-ubyte.gz"))
    assert data.train_x.shape == (60000, 1, 28, 28)
    assert data.test_x.shape == (10000, 1, 28, 28)
    assert (data.train_x.dtype, data.train_y.dtype, data.classes) == (torch.float32, torch.int64, 10)
    assert data.train_x.min().item() == pytest.approx(-0.1307 / 0.3081, abs=1e-6)
    assert data.train_x.max().item() == pytest.approx((1 - 0.1307) / 0.3081, abs=1e-6)
    assert data.train_x.mean().item() == pytest.approx(mean, abs=0.01)
    assert sorted(set(data.test_y.tolist())) == list(range(10))
    if name == "mnist":
        assert data.train_y[:5].tolist() == [5, 0, 4, 1, 9]


def test_the_real_cifar10_is_read_and_normalised() -> None:
    data = load("cifar10", real_root("cifar10", "test_batch.bin"))
    assert data.train_x.shape == (50000, 3, 32, 32)
    assert data.train_x.mean().abs().item() < 0.01
    assert torch.bincount(data.test_y).tolist() == [1000] * 10


def test_digits_have_a_fixed_stratified_split() -> None:
    pytest.importorskip("sklearn")
    torch.manual_seed(1)
    first = load("digits")
    torch.manual_seed(2)
    second = load("Digits")
    assert torch.equal(first.test_x, second.test_x)
    assert first.shape == (1, 8, 8)
    assert first.train_x.dtype == torch.float32
    assert (first.train_x.min().item(), first.train_x.max().item()) == (0, 1)
    train, test = torch.bincount(first.train_y), torch.bincount(first.test_y)
    assert int((train + test).sum()) == 1797
    assert ((test / (train + test) - 0.2).abs() < 0.01).all()


def test_pixels_and_labels_come_out_where_they_were_put(tiny_mnist: Path) -> None:
    data = load("mnist", tiny_mnist.parent)
    raw = gzip.decompress((tiny_mnist / "t10k-images-idx3-ubyte.gz").read_bytes())
    pixels = np.frombuffer(raw, np.uint8, offset=16).reshape(TEST, 1, 3, 3)
    assert torch.allclose(data.test_x, (torch.tensor(pixels) / 255 - 0.1307) / 0.3081)
    assert isinstance(data, Dataset)
    assert data.to("cpu").test_y.equal(data.test_y)


def test_cifar_channels_are_normalised_one_by_one(tiny_cifar: Path) -> None:
    data = load("cifar10", tiny_cifar.parent)
    row = np.frombuffer((tiny_cifar / "data_batch_3.bin").read_bytes(), np.uint8).reshape(2, 3073)[1]
    assert data.train_y[5] == row[0]
    blue = torch.tensor(row[2049:].reshape(32, 32) / 255, dtype=torch.float32)
    assert torch.allclose(data.train_x[5, 2], (blue - 0.4465) / 0.2010, atol=1e-6)
    assert data.train_x.shape == (10, 3, 32, 32)


def test_cifar_is_found_in_the_folder_its_archive_unpacks_to(tiny_cifar: Path) -> None:
    tiny_cifar.rename(tiny_cifar.parent / "cifar-10-batches-bin")
    assert len(load("cifar10", tiny_cifar.parent).test_y) == 2


def test_files_may_be_ungzipped_or_gzipped_again(tiny_mnist: Path) -> None:
    before = load("mnist", tiny_mnist.parent)
    images, labels = tiny_mnist / "train-images-idx3-ubyte.gz", tiny_mnist / "train-labels-idx1-ubyte.gz"
    images.with_suffix("").write_bytes(gzip.decompress(images.read_bytes()))
    images.unlink()
    labels.write_bytes(gzip.compress(gzip.decompress(labels.read_bytes()), compresslevel=1, mtime=7))
    after = load("mnist", tiny_mnist.parent)
    assert torch.equal(before.train_x, after.train_x)
    assert torch.equal(before.train_y, after.train_y)


def test_a_missing_file_is_named_with_the_place_and_the_command(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        load("fashion-mnist", tmp_path)
    for part in (str(tmp_path / "fashion-mnist"), "train-images-idx3-ubyte.gz", "robagg data get fashion-mnist"):
        assert part in str(caught.value)


def fault(root: Path, name: str = "mnist") -> str:
    with pytest.raises(ValueError, match="robagg data get") as caught:
        load(name, root)
    return str(caught.value)


def test_a_file_that_is_cut_off_or_corrupt_is_named(tiny_mnist: Path) -> None:
    path = tiny_mnist / "train-images-idx3-ubyte.gz"
    stored = path.read_bytes()
    for broken in (stored[:-10], stored[:-8] + bytes([stored[-8] ^ 1]) + stored[-7:]):  # the end; the checksum
        path.write_bytes(broken)
        with pytest.raises(
            ValueError, match=r"train-images-idx3-ubyte.gz must hold the training images of mnist.*corrupt"
        ):
            load("mnist", tiny_mnist.parent)


@pytest.mark.parametrize("other", ["another file", "a changed byte", "an error page", "nothing"])
def test_a_file_that_is_not_as_published_is_named_with_both_md5s(tiny_mnist: Path, other: str) -> None:
    path = tiny_mnist / "train-images-idx3-ubyte.gz"
    stored = path.read_bytes()
    raw = bytearray(gzip.decompress(stored))
    raw[-1] ^= 1
    contents = {
        "another file": (tiny_mnist / "train-labels-idx1-ubyte.gz").read_bytes(),
        "a changed byte": gzip.compress(bytes(raw)),
        "an error page": b"<!DOCTYPE html><title>404</title>",
        "nothing": b"",
    }
    path.write_bytes(contents[other])
    message = fault(tiny_mnist.parent)
    assert str(path) in message
    assert hashlib.md5(stored).hexdigest() in message
    assert hashlib.md5(contents[other]).hexdigest() in message


def test_damaged_cifar_batches_are_named(tiny_cifar: Path) -> None:
    path = tiny_cifar / "data_batch_2.bin"
    path.write_bytes(path.read_bytes()[:-1])
    assert "6145 bytes" in fault(tiny_cifar.parent, "cifar10")


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"did you mean 'mnist'.*cifar10, digits, fashion-mnist, mnist"):
        load("mnis")


def test_the_root_is_the_argument_then_the_environment_then_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBAGG_DATA", "/a")
    monkeypatch.setenv("XDG_CACHE_HOME", "/c")
    assert locate_root("/b") == Path("/b")
    assert locate_root() == Path("/a")
    monkeypatch.delenv("ROBAGG_DATA")
    assert locate_root() == Path("/c/robagg")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert locate_root() == Path.home() / ".cache" / "robagg"


def test_digits_without_scikit_learn_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match=r"needs scikit-learn: pip install 'robagg\[lab\]'"):
        load("digits")
