"""A safetensors file that is there whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from torch import Tensor

from robagg.files.header import write_header
from robagg.files.source import Entry, view_bytes


class Writer:
    """Writes beside the file, in any order, and puts what it wrote in its place at the end of the `with` block.

    Whatever ends the block early leaves the file as it was. Of a process that is killed a file ending in `.part` is
    left beside it.

    Args:
        path: where the file goes.
        entries: the tensors that it will hold.
    """

    def __init__(self, path: Path, entries: Mapping[str, Entry]) -> None:
        self.path = path
        self._beside = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.part")
        self._head, self._starts = write_header({name: (e.dtype, e.shape) for name, e in entries.items()})
        self._size = len(self._head) + sum(entry.count * entry.dtype.itemsize for entry in entries.values())

    def __enter__(self) -> Writer:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._beside.open("xb", buffering=0)
        try:
            self._file.write(self._head)
            self._file.truncate(self._size)
        except BaseException:
            self._discard()
            raise
        return self

    def write(self, name: str, start: int, values: Tensor) -> None:
        """Write the numbers start..start+k-1 (k,) of a tensor."""
        room = view_bytes(values.contiguous())
        offset = self._starts[name] + start * values.itemsize
        self._file.seek(offset)
        while room:
            room = room[self._file.write(room) :]

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is not None:
            self._discard()
            return
        try:
            os.fsync(self._file.fileno())
            self._file.close()
            self._beside.replace(self.path)
        except BaseException:
            self._discard()
            raise
        if os.name == "posix":
            folder = os.open(self.path.parent, os.O_RDONLY)  # the new name must last too
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _discard(self) -> None:
        self._file.close()
        self._beside.unlink(missing_ok=True)
