"""Downloading, with pooch's own checks and a made-up transport: no test opens a connection."""

from __future__ import annotations

import gzip
import hashlib
import io
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from robagg.data import fetch
from robagg.data import sources as table
from robagg.data.sources import File, Source

pooch = pytest.importorskip("pooch")

PAGES: dict[str, bytes] = {}
ASKED: list[str] = []


def md5_of(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()


@pytest.fixture(autouse=True)
def transport(monkeypatch: pytest.MonkeyPatch) -> None:
    """Serve PAGES in place of the network and note what was asked for."""

    def send(self: Any, url: str, output_file: Any, pooch: Any) -> None:
        ASKED.append(url)
        if url not in PAGES:
            raise ConnectionError("no route to host")
        if self.progressbar:
            self.progressbar.total = len(PAGES[url])
            self.progressbar.update(len(PAGES[url]))
            self.progressbar.close()
        if hasattr(output_file, "write"):
            output_file.write(PAGES[url])
        else:
            Path(output_file).write_bytes(PAGES[url])

    PAGES.clear()
    ASKED.clear()
    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", send)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Source:
    contents = {"one.gz": b"first", "two.gz": b"second"}
    files = tuple(File(name, name, (len(c),), md5_of(c), md5_of(c)) for name, c in contents.items())
    source = Source("mnist", files, ("mnist",), ("http://first/", "http://second/"), (0.0,), (1.0,))
    monkeypatch.setitem(table.SOURCES, "mnist", source)
    PAGES.update({f"http://second/{name}": content for name, content in contents.items()})
    return source


def test_the_next_home_is_tried_and_what_is_intact_is_not_asked_for_again(tiny: Source, tmp_path: Path) -> None:
    folder = fetch("mnist", tmp_path, progress=False)
    assert folder == tmp_path / "mnist"
    assert (folder / "two.gz").read_bytes() == b"second"
    ASKED.clear()
    fetch("mnist", tmp_path, progress=False)
    assert ASKED == []
    (folder / "one.gz").write_bytes(b"broken")
    fetch("mnist", tmp_path, progress=False)
    assert (folder / "one.gz").read_bytes() == b"first"
    assert {url.rpartition("/")[2] for url in ASKED} == {"one.gz"}


def test_what_load_accepts_is_not_asked_for_again(tiny: Source, tmp_path: Path) -> None:
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "one").write_bytes(b"first")
    (tmp_path / "mnist" / "two.gz").write_bytes(gzip.compress(b"second"))
    assert fetch("mnist", tmp_path, progress=False) == tmp_path / "mnist"
    assert ASKED == []
    (tmp_path / "mnist" / "one").write_bytes(b"broken")
    fetch("mnist", tmp_path, progress=False)
    assert {url.rpartition("/")[2] for url in ASKED} == {"one.gz"}


def test_the_folder_is_the_one_the_files_are_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = File("test_batch.bin", "test batch", (1,), md5_of(b"b"), md5_of(b"b"))
    source = Source("cifar10", (file,), ("cifar10", "unpacked"), ("http://home/",), (0.0,), (1.0,), ("all.tar.gz", ""))
    monkeypatch.setitem(table.SOURCES, "cifar10", source)
    (tmp_path / "unpacked").mkdir()
    (tmp_path / "unpacked" / "test_batch.bin").write_bytes(b"b")
    assert fetch("cifar10", tmp_path, progress=False) == tmp_path / "unpacked"
    assert ASKED == []


def test_a_home_that_sends_something_else_is_passed_over(tiny: Source, tmp_path: Path) -> None:
    PAGES["http://first/one.gz"] = b"<html>not found</html>"
    fetch("mnist", tmp_path, progress=False)
    assert (tmp_path / "mnist" / "one.gz").read_bytes() == b"first"


def test_when_no_home_answers_the_error_says_file_place_and_command(tiny: Source, tmp_path: Path) -> None:
    PAGES.clear()
    with pytest.raises(ConnectionError) as caught:
        fetch("mnist", tmp_path, progress=False)
    for part in ("one.gz", str(tmp_path / "mnist"), "http://first/", "http://second/", "robagg data get mnist"):
        assert part in str(caught.value)


def test_progress_is_drawn_on_standard_error(tiny: Source, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fetch("mnist", tmp_path)
    streams = capsys.readouterr()
    assert "100%" in streams.err
    assert streams.out == ""


def make_archive(contents: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, content in contents.items():
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def test_an_archive_is_unpacked_and_checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    contents = {"data_batch_1.bin": b"a", "test_batch.bin": b"b", "readme.html": b"c"}
    archive = make_archive(contents)
    names = ("data_batch_1.bin", "test_batch.bin")
    files = tuple(File(n, n, (1,), md5_of(contents[n]), md5_of(contents[n])) for n in names)
    source = Source("cifar10", files, ("cifar10",), ("http://home/",), (0.0,), (1.0,), ("all.tar.gz", md5_of(archive)))
    monkeypatch.setitem(table.SOURCES, "cifar10", source)
    PAGES["http://home/all.tar.gz"] = archive
    folder = fetch("cifar10", tmp_path, progress=False)
    assert folder is not None
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)


def test_digits_need_no_download() -> None:
    pytest.importorskip("sklearn")
    assert fetch("digits") is None
    assert ASKED == []


def test_the_published_homes_and_md5s_are_complete() -> None:
    for source in table.SOURCES.values():
        assert all(home.startswith("http") and home.endswith("/") for home in source.homes)
        assert all(len(file.md5) == 32 == len(file.raw_md5) for file in source.files)
        assert len({file.md5 for file in source.files}) == len(source.files)


def test_data_and_models_import_with_torch_and_numpy_alone() -> None:
    code = (
        "import sys\n"
        "for name in ('pooch', 'sklearn', 'matplotlib'): sys.modules[name] = None\n"
        "import robagg.splits, robagg.models\n"
        "robagg.splits.splits.parse('rho(rho=0.5)')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
