"""Finds a data set's files, checks them against what was published, and reads them with numpy."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from robagg.data.sources import File, Source

_GZIP = b"\x1f\x8b"


def locate_root(root: str | Path | None = None) -> Path:
    """Where data is read from and downloaded to: `root`, else $ROBAGG_DATA, else the user's cache folder.

    The cache folder is the same whether or not the packages that download are installed.

    Example:
        >>> locate_root("there").name
        'there'
    """
    if root is not None:
        return Path(root).expanduser()
    if chosen := os.environ.get("ROBAGG_DATA"):
        return Path(chosen).expanduser()
    return locate_user_cache()


def locate_user_cache() -> Path:
    """Our folder in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "robagg"


def find_file(source: Source, file: File, root: Path) -> Path:
    """The path of a file below `root`, gzipped or not; if there is none, an error that says how to get it."""
    names = dict.fromkeys((file.name, file.name.removesuffix(".gz")))
    for folder in source.folders:
        for name in names:
            if (path := root / folder / name).is_file():
                return path
    folders = ", ".join(str(root / folder) for folder in source.folders)
    raise FileNotFoundError(
        f"cannot read {source.name} without its {file.holds}: looked for {' or '.join(names)} in {folders}. "
        f"`robagg data get {source.name}` downloads it; if you have it, set ROBAGG_DATA to the folder "
        f"that holds {source.folders[0]}/"
    )


def read_file(source: Source, file: File, root: Path) -> NDArray[np.uint8]:
    """The checked content of a file as a uint8 array of the published shape."""
    raw = read_checked(find_file(source, file, root), {file.md5, file.raw_md5}, f"the {file.holds} of {source.name}")
    return np.frombuffer(raw, np.uint8, offset=file.header).reshape(file.shape)


def read_checked(path: Path, published: set[str], what: str) -> bytes:
    """The content of a file, gzipped or not; its MD5, or that of the file as it lies there, must be a published one."""
    stored = path.read_bytes()
    try:
        raw = gzip.decompress(stored) if stored[:2] == _GZIP else stored
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{path} must hold {what}, got a gzip file that is cut off or corrupt: {error}") from error
    # A file that was gzipped again has other bytes and the same content.
    got = _md5(stored), _md5(raw)
    if published.isdisjoint(got):
        raise ValueError(
            f"{path} must hold {what} as published, with the MD5 {' or '.join(sorted(published))}, got {got[0]} and "
            f"{len(stored)} bytes: delete it and download it again by `robagg data get`"
        )
    return raw


def is_there(source: Source, file: File, root: Path) -> bool:
    """Whether a file can be read below `root` and has the published content."""
    try:
        read_file(source, file, root)
    except (FileNotFoundError, ValueError):
        return False
    return True


def is_intact(path: Path, md5: str) -> bool:
    """Whether a file is there with that MD5."""
    return path.is_file() and _md5(path.read_bytes()) == md5


def _md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()
