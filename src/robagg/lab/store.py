"""An append-only file of records, one JSON line per run, that survives being killed at any byte."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from robagg.lab.run import RESULTS_VERSION

try:
    import fcntl
except ImportError:  # a system without such locks
    fcntl = None  # type: ignore[assignment]

Record = dict[str, Any]
MARK = b'{"robagg":'
"""How every record begins."""


class StoreBusyError(RuntimeError):
    """Another process writes to the store."""


@dataclass
class Contents:
    """What a store holds."""

    records: dict[str, Record] = field(default_factory=dict)
    """By key; a run that failed and was done again is there once, with its last record."""
    notes: list[str] = field(default_factory=list)
    """What was skipped, in sentences."""


class Store:
    """A store of records. Reading needs no lock; to write, enter it.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "runs.jsonl"
        >>> with Store(path) as store:
        ...     store.append({"robagg": RESULTS_VERSION, "key": "a", "status": "ok"})
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

    def read(self) -> Contents:
        """Every record of this version; a store that does not exist is empty."""
        contents, strange, versions = Contents(), list[int](), Counter[str]()
        for number, line, ended in self._lines():
            record = _parse(line)
            if record is None and not ended and _is_ours(line):
                contents.notes.append(f"the last line is torn after {len(line)} bytes and is left out")
            elif record is None:
                strange.append(number)
            elif record["robagg"] != RESULTS_VERSION:
                versions[str(record["robagg"])] += 1
            elif contents.records.get(record["key"], {}).get("status") != "ok":
                contents.records[record["key"]] = record
        for version, count in versions.items():
            contents.notes.append(
                f"{count} line{'s are' * (count > 1) or ' is'} of results version {version} and left out; "
                f"this is version {RESULTS_VERSION}"
            )
        if strange:
            listed = ", ".join(map(str, strange[:8])) + ", ..." * (len(strange) > 8)
            contents.notes.append(f"lines that are no record were skipped: {listed}")
        return contents

    def __enter__(self) -> Store:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = not self.path.exists()
        self._file = self.path.open("ab+", buffering=0)
        try:
            _lock(self._file, self.path)
            if fresh:
                _sync_folder(self.path.parent)
            self.notes = self._repair(self._file)
            contents = self.read()
        except BaseException:
            self._close()
            raise
        self.records = contents.records
        self.notes += contents.notes
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
        line = json.dumps(record, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        if not line.startswith(MARK):
            raise ValueError(f"a record must begin with its version, {MARK.decode()}..., got {line[:40].decode()}...")
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
            raise

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None

    def _lines(self) -> Iterator[tuple[int, bytes, bool]]:
        """(number, bytes, whether a newline ended it) of each line that is not empty."""
        if self.path.exists():
            with self.path.open("rb") as file:
                for number, line in enumerate(file, start=1):
                    if line.strip():
                        yield number, line.rstrip(b"\r\n"), line.endswith(b"\n")

    def _repair(self, file: BinaryIO) -> list[str]:
        """Make the file end in a newline, so that the next record has a line of its own."""
        last = None
        for _, line, ended in self._lines():
            last = None if ended else line
        if last is None:
            return []
        if _parse(last) is None and _is_ours(last):
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


def _parse(line: bytes) -> Record | None:
    """The record that a line is."""
    try:
        record = json.loads(line) if line.startswith(MARK) else None
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and isinstance(record.get("key"), str) else None


def _is_ours(line: bytes) -> bool:
    return line.startswith(MARK) or MARK.startswith(line)


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
