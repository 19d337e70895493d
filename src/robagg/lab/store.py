"""An append-only file of records, one JSON line per run, that survives being killed at any byte."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from robagg.lab.contents import Contents, read_file, read_lines, refuse_special
from robagg.lab.lines import DAMAGED, Record, read_line, write_line

try:
    import fcntl
except ImportError:  # a system without such locks
    fcntl = None  # type: ignore[assignment]


class StoreBusyError(RuntimeError):
    """Another process writes to the store."""


class Store:
    """A store of records. Reading needs no lock; to write, enter it.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "runs.jsonl"
        >>> with Store(path) as store:
        ...     store.append({"robagg": 1, "key": "a", "status": "ok"})
        >>> _ = path.write_bytes(path.read_bytes() + b'{"robagg":1,"key":"b","sta')
        >>> Store(path).read().notes
        ['the last line is torn after 26 bytes and is left out']
        >>> with Store(path) as store:
        ...     store.notes
        ['the last line was torn after 26 bytes and is cut off']
        >>> list(Store(path).read().records)
        ['a']
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.notes: list[str] = []
        """What was repaired when the store was entered, and what was skipped."""
        self.records: dict[str, Record] = {}
        self._file: BinaryIO | None = None

    def read(self, *, without: Sequence[str] = (), look: Callable[[Record], object] | None = None) -> Contents:
        """Every record of this version, without the fields named; a store that does not exist is empty."""
        return read_file(self.path, without, look)

    def __enter__(self) -> Store:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = not self.path.exists()
        refuse_special(self.path)
        self._file = self.path.open("ab+", buffering=0)
        try:
            _lock(self._file, self.path)
            if fresh:
                _sync_folder(self.path.parent)
            before = self.read()  # refuses a file that is no store before a byte is written to it
            self.notes = self._repair(self._file)
            contents = self.read() if self.notes else before
            self.records = contents.records
            self.notes += contents.notes
            self._take_in()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def append(self, record: Record) -> None:
        """Write a record, and wait until it is on the disk. A result that is there already is refused."""
        if self._file is None:
            raise RuntimeError("a record must be appended inside `with store:`, which keeps others from writing")
        key = record["key"]
        if self.records.get(key, {}).get("status") == "ok":
            raise ValueError(f"the store has a result for the run {key} already")
        line = write_line(record)
        size, written = self._file.seek(0, os.SEEK_END), 0
        try:
            while written < len(line):
                written += self._file.write(line[written:])
            self.records[key] = record  # it is in the file, even if Ctrl-C comes now
            os.fsync(self._file.fileno())
        except BaseException as error:
            if written < len(line) or isinstance(error, OSError):
                self._file.truncate(size)  # half a line, as on a full disk, would be in the next one's way
                self.records.pop(key, None)
            if isinstance(error, OSError):
                raise type(error)(error.errno, self._keep_beside(line, key, error)) from error
            raise

    def _keep_beside(self, line: bytes, key: str, error: OSError) -> str:
        """Put a record that the store cannot take into another file; what is said of it."""
        said = f"the store {self.path} cannot be written ({error.strerror or error})"
        for place in (self._beside, Path(tempfile.gettempdir(), self._beside.name)):
            try:
                with place.open("ab") as file:
                    size = file.tell()
                    try:
                        file.write(line)
                        file.flush()
                        os.fsync(file.fileno())
                    except OSError:
                        os.truncate(place, size)
                        raise
            except OSError:
                continue
            how = "the next sweep takes it in" if place == self._beside else f"append that file to {self.path.name}"
            return f"{said}; the finished run {key} is kept in {place}: when there is space, {how}"
        return f"{said}, nor can a file beside it: the finished run {key} is lost, make space and run it again"

    @property
    def _beside(self) -> Path:
        return self.path.with_name(self.path.name + ".unsaved")

    def _take_in(self) -> None:
        """Append the records that a full disk kept out."""
        if not self._beside.is_file():
            return
        found = Store(self._beside).read().records
        for key, record in found.items():
            if self.records.get(key, {}).get("status") != "ok":
                self.append(record)
        self._beside.unlink()
        self.notes.append(f"{len(found)} run{'s' * (len(found) != 1)} kept in {self._beside.name} taken in")

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None

    def _repair(self, file: BinaryIO) -> list[str]:
        """Make the file end in a newline, so that the next record has a line of its own."""
        last = None
        for _, line, ended in read_lines(self.path):
            last = None if ended else line
        if last is None:
            return []
        if read_line(last) == DAMAGED:
            file.truncate(file.seek(0, os.SEEK_END) - len(last))
            notes = [f"the last line was torn after {len(last)} bytes and is cut off"]
        else:
            # A whole record that lacks its newline, or bytes that are not ours to delete.
            file.write(b"\n")
            notes = ["the last line had no end and got one"]
        os.fsync(file.fileno())
        return notes


def find_settled(records: Mapping[str, Record], *, retry: bool = True) -> set[str]:
    """Keys of runs that need not be done again: those with a result, and without `retry` those that failed too."""
    return {key for key, record in records.items() if record.get("status") == "ok" or not retry}


def _lock(file: BinaryIO, path: Path) -> None:
    """Keep other writers away until the file is closed, which the end of the process does too."""
    try:
        if fcntl is not None:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise StoreBusyError(
            f"another process is writing to {path}: wait until it is done, or choose another store"
        ) from error


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
