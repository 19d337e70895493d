"""NumPy's .npz: a zip of arrays. Arrays of Python objects are refused, so that no code is ever unpickled."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import IO

import numpy as np
import torch
from numpy.lib import format as npy
from torch import Tensor

from robagg._core.leaf import cut
from robagg.files.header import DTYPES, FileFaultError
from robagg.files.source import Entry, Place, Source, view_bytes

HEAD = 30
"""Bytes in front of a member's name."""
SAME = {np.dtype(str(dtype).removeprefix("torch.")): dtype for dtype in DTYPES.values() if dtype != torch.bfloat16}


class NpzFile(Source):
    """One .npz file.

    Arrays that `np.savez` wrote are read where they lie; those of `np.savez_compressed` are decompressed as they are
    read, once in each pass.

    Args:
        path: where it is.
    """

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self.place = Place(path)
        self.entries: dict[str, Entry] = {}
        self._starts: dict[str, int] = {}
        """Where the numbers of an array begin in its member."""
        self._open: tuple[str, IO[bytes]] | None = None
        try:
            self._zip = zipfile.ZipFile(path)
            self._members = {member.filename.removesuffix(".npy"): member for member in self._zip.infolist()}
            if len(self._members) < len(self._zip.infolist()):
                raise FileFaultError("it names an array twice")
            for name in self._members:
                self._read_head(name)
        except FileFaultError:
            raise
        except Exception as e:  # NumPy and zipfile raise whatever a header brings them to
            raise FileFaultError(f"it must be a zip of arrays, got {cut(type(e).__name__)}: {cut(str(e))}") from None

    def _read_head(self, name: str) -> None:
        member = self._members[name]
        with self._zip.open(member) as file:
            version = npy.read_magic(file)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, fortran, dtype = read(file)
            start = file.tell()
        if dtype not in SAME or not dtype.isnative:
            kind = "Python objects" if dtype.hasobject else cut(str(dtype))
            raise FileFaultError(f"{cut(name)!r} must hold real numbers, got {kind}")
        if fortran and len(shape) > 1:
            raise FileFaultError(f"{cut(name)!r} must lie in memory row by row, got column by column")
        entry = Entry(SAME[dtype], shape)
        if min(shape, default=0) < 0 or start + entry.count * dtype.itemsize != member.file_size:
            raise FileFaultError(
                f"{cut(name)!r} must have the bytes of {dtype} {shape}, got {member.file_size - start}"
            )
        if member.compress_type == zipfile.ZIP_STORED:
            head = self.place.read_bytes(member.header_offset, HEAD)
            start += member.header_offset + HEAD + sum(int.from_bytes(head[k : k + 2], "little") for k in (26, 28))
            if start + entry.count * dtype.itemsize > self.place.size:
                raise FileFaultError(f"the bytes of {cut(name)!r} must lie within the file")
        self.entries[name], self._starts[name] = entry, start

    def read(self, name: str, start: int, out: Tensor) -> None:
        member = self._members[name]
        offset = self._starts[name] + start * out.itemsize
        if member.compress_type == zipfile.ZIP_STORED:
            self.place.read_into(offset, out)
            return
        if self._open is None or self._open[0] != name:
            self._open = (name, self._zip.open(member))
        try:
            file = self._open[1]
            file.seek(offset)
            room = view_bytes(out)
            while room:
                part = file.read(min(len(room), 1 << 20))
                if not part:
                    raise FileFaultError(f"{cut(name)!r} ends early")
                room[: len(part)] = part
                room = room[len(part) :]
        except (EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as e:
            raise FileFaultError(f"{cut(name)!r} cannot be decompressed: {cut(str(e))}") from None
        if out.dtype == torch.bool:
            out.view(torch.uint8).clamp_(max=1)
