"""Finds a data set's files, reads them with numpy, and says exactly what is wrong with one that is not as published."""

from __future__ import annotations

import gzip
import hashlib
import os
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from robagg.data.sources import SOURCES, File, Source

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
    path = find_file(source, file, root)
    stored = path.read_bytes()
    raw = stored
    if stored[:2] == _GZIP:
        try:
            raw = gzip.decompress(stored)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(_describe_broken_gzip(source, file, path, stored, error)) from error
    # A file gzipped anew has other bytes and the same content, so the content decides.
    if _md5(stored) != file.md5 and _md5(raw) != file.raw_md5:
        raise ValueError(_describe_damage(source, file, path, stored, raw))
    return np.frombuffer(raw, np.uint8, offset=file.header).reshape(file.shape)


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


def _describe_broken_gzip(source: Source, file: File, path: Path, stored: bytes, error: Exception) -> str:
    if isinstance(error, EOFError):
        reason = "its gzip stream ends too early, so it was cut off"
    else:
        reason = f"its gzip stream is corrupt ({error})"
    return _sentence(source, file, path, reason, file.md5, _md5(stored), file.size, len(stored))


def _describe_damage(source: Source, file: File, path: Path, stored: bytes, raw: bytes) -> str:
    reason = _name_twin(file, stored, raw) or _compare_headers(file, raw)
    if not reason and len(raw) < file.raw_size:
        reason = "it is too short, so it was cut off"
    elif not reason and len(raw) > file.raw_size:
        reason = "it is too long"
    reason = reason or "its length is right, but bytes in it were changed"
    if stored is raw:
        return _sentence(source, file, path, reason, file.raw_md5, _md5(raw), file.raw_size, len(raw))
    reason += f" ({file.raw_size} bytes expected un-gzipped, got {len(raw)})" if len(raw) != file.raw_size else ""
    return _sentence(source, file, path, reason, file.md5, _md5(stored), file.size, len(stored))


def _sentence(
    source: Source, file: File, path: Path, reason: str, md5: str, got_md5: str, size: int, got_size: int
) -> str:
    return (
        f"{path} does not hold the {file.holds} of {source.name}: {reason}. "
        f"Expected MD5 {md5} and {size} bytes, got MD5 {got_md5} and {got_size} bytes. "
        f"Delete it and run `robagg data get {source.name}`"
    )


def _name_twin(file: File, stored: bytes, raw: bytes) -> str:
    """Two files in each other's place are the commonest fault, and the MD5 knows which file this one is."""
    got = {_md5(stored), _md5(raw)}
    for source in SOURCES.values():
        for other in source.files:
            if other != file and got & {other.md5, other.raw_md5}:
                return f"it is another file, the {other.holds} of {source.name} ({other.name})"
    return ""


def _compare_headers(file: File, raw: bytes) -> str:
    if file.magic is None:
        return ""
    magic = int.from_bytes(raw[:4], "big")
    if len(raw) >= 4 and magic != file.magic:
        kind = {0x801: ", which marks labels", 0x803: ", which marks images"}.get(magic, "")
        return f"it should start with the IDX magic 0x{file.magic:08x}, and starts with 0x{magic:08x}{kind}"
    if len(raw) < file.header:
        return f"it ends within its header of {file.header} bytes"
    shape = struct.unpack_from(f">{len(file.shape)}I", raw, 4)
    if shape != file.shape:
        wanted, came = (" x ".join(map(str, sizes)) for sizes in (file.shape, shape))
        return f"its header should say {wanted}, and says {came}"
    return ""
