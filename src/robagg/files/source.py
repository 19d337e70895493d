"""Where the numbers of one client lie: a file, or anything that holds tensors and can read a part of one."""

from __future__ import annotations

import math
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

import torch
from torch import Tensor

from robagg.files.header import FileFaultError


@dataclass(frozen=True)
class Entry:
    """What must agree between clients about a tensor.

    Args:
        dtype: of its numbers.
        shape: its lengths.
    """

    dtype: torch.dtype
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)


class Source(ABC):
    """One client's tensors, of which a part at a time is read.

    Example:
        >>> class Ones(Source):
        ...     name, entries = "ones", {"w": Entry(torch.float32, (2, 3))}
        ...     def read(self, name, start, out):
        ...         out.fill_(1)
    """

    name: str
    """How it is called in verdicts."""
    entries: Mapping[str, Entry]
    """Its tensors, in the order in which they are read best."""

    @abstractmethod
    def read(self, name: str, start: int, out: Tensor) -> None:
        """Fill `out` (k,) with the numbers start..start+k-1 of a tensor, in row-major order.

        What is wrong with the source raises a FileFaultError or an OSError; the client is then rejected.
        """


class Place:
    """A regular file that must stay as it is while parts of it are read.

    It is opened for each part: a thousand clients with ten files each are more than a process may keep open.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with _open(path) as file:
            found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise FileFaultError("it must be a file")
        self.size = found.st_size
        self._state = _describe(found)

    def read_bytes(self, offset: int, count: int) -> bytes:
        """Some bytes, fewer where the file ends."""
        with _open(self.path) as file:
            file.seek(offset)
            return file.read(count)

    def read_into(self, offset: int, out: Tensor) -> None:
        """Fill a tensor (k,) with the bytes from an offset on."""
        room = view_bytes(out)
        with _open(self.path) as file:
            if _describe(os.fstat(file.fileno())) != self._state:
                raise FileFaultError("it changed while it was read")
            file.seek(offset)
            while room:
                got = file.readinto(room)
                if not got:
                    raise FileFaultError(f"it ends after {file.tell()} bytes")
                room = room[got:]
        if out.dtype == torch.bool:
            out.view(torch.uint8).clamp_(max=1)  # another byte is no bool, and what torch makes of it is not defined


def view_bytes(numbers: Tensor) -> memoryview:
    """The bytes of a vector (k,) where they lie."""
    return memoryview(numbers.view(torch.uint8).numpy())  # type: ignore[arg-type]


def _open(path: Path) -> FileIO:
    def open_at_once(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))  # not wait for a pipe that nobody writes to

    return FileIO(path, "rb", opener=open_at_once)


def _describe(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
