"""Downloads data sets from their public homes and checks every byte against the published MD5s."""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

from robagg.data.dataset import find_name
from robagg.data.files import find_file, is_intact, is_there, locate_root
from robagg.data.optional import require
from robagg.data.sources import SOURCES, Source


def fetch(name: str, root: str | Path | None = None, progress: bool = True) -> Path | None:
    """Download what is missing of a data set, check it, and say where it lies.

    Files that `load` accepts, gzipped or not, are kept; damaged ones are downloaded again.

    Args:
        name: mnist, fashion-mnist, cifar10 or digits.
        root: folder to download into; else $ROBAGG_DATA, else the user's cache folder.
        progress: draw a bar on standard error.

    Returns:
        The folder of the data set; None for digits, which comes with scikit-learn.

    Raises:
        ConnectionError: no home of the data set sent the published file.

    Example:
        >>> fetch("digits") is None
        True
    """
    name = find_name(name)
    if name == "digits":
        require("sklearn.datasets", "scikit-learn", "the digits data set")
        return None
    source, place = SOURCES[name], locate_root(root)
    folder = place / source.folders[0]
    missing = [file for file in source.files if not is_there(source, file, place)]
    if not missing:
        return find_file(source, source.files[0], place).parent
    if source.archive is not None:
        path = retrieve(source.homes, *source.archive, folder, source.name, progress)
        _unpack(source, path, folder)
        path.unlink()  # what it held lies beside it
    else:
        for file in missing:
            retrieve(source.homes, file.name, file.md5, folder, source.name, progress)
    return folder


def retrieve(homes: Sequence[str], name: str, md5: str, folder: Path, of: str, progress: bool) -> Path:
    """Try each home in turn, because a mirror that is down or sends a web page must not end the download."""
    pooch = require("pooch", "pooch", f"downloading {of}")
    failures = []
    for home in homes:
        downloader = pooch.HTTPDownloader(progressbar=Bar(name) if progress else False)
        try:
            path = pooch.retrieve(home + name, f"md5:{md5}", fname=name, path=folder, downloader=downloader)
            return Path(path)
        except (OSError, ValueError) as error:  # no connection or no such page; a wrong MD5
            failures.append(f"{home}{name}: {' '.join(str(error).split())}")
    raise ConnectionError(
        f"could not download {name} of {of} into {folder} ({'; '.join(failures)}). "
        f"Try `robagg data get {of}` again; if you have the file (MD5 {md5}), put it there first"
    )


def _unpack(source: Source, archive: Path, folder: Path) -> None:
    missing = {file.name: file for file in source.files}
    with tarfile.open(archive) as tar:
        for member in tar:
            file = missing.pop(Path(member.name).name, None)
            content = tar.extractfile(member) if file is not None else None
            if file is None or content is None:
                continue
            part = folder / f"{file.name}.part"  # so that an interrupted run leaves no half file under the real name
            part.write_bytes(content.read())
            if not is_intact(part, file.md5):
                part.unlink()
                raise ValueError(f"{member.name} in {archive} must have the MD5 {file.md5}, got another")
            part.replace(folder / file.name)
    if missing:
        raise ValueError(f"{archive} must hold {len(source.files)} files, got none called {', '.join(missing)}")


class Bar:
    """A progress bar of one line on standard error, with the four names that pooch calls.

    Example:
        >>> bar = Bar("file.gz")
        >>> bar.total = 10
        >>> bar.update(5)
        >>> bar.done
        5
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.total = 0
        self.done = 0
        self._shown = -1

    def update(self, amount: int) -> None:
        self.done += amount
        percent = min(100, 100 * self.done // self.total) if self.total else 0
        if percent != self._shown:
            self._shown = percent
            filled = "#" * (percent * 30 // 100)
            sys.stderr.write(f"\r{self.name} [{filled:<30}] {percent:3d}% of {self.total / 1e6:.1f} MB")
            sys.stderr.flush()

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        sys.stderr.write("\n")
