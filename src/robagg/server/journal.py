"""The journal: a JSON line for each round, each with the hash of the one before it, so that no change goes unseen.

A line ends in `"prev":"...","hash":"..."}`: the hash of the line before it (64 zeros in the first), and the SHA-256 of
all bytes of this line up to `,"hash"`. Nothing has to be parsed, or written again in some order, to check it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robagg.server.report import RoundReport

VERSION = 1
MARK = b'{"journal":'
"""How every line begins."""
START = "0" * 64
"""What stands for the hash of the line before the first."""
_TAIL = re.compile(rb',"prev":"([0-9a-f]{64})","hash":"([0-9a-f]{64})"}\Z')


@dataclass(frozen=True)
class JournalContents:
    """What a journal holds.

    Args:
        rounds: the rounds, in the order of the file.
        strange: how many lines hold no round: the last may be torn, because a run is writing it.
    """

    rounds: tuple[RoundReport, ...]
    strange: int = 0


class Journal:
    """Appends to a journal, and goes on with the one that is there: half a line that a killed run left is cut off.

    Args:
        path: the file; it and its folder are made with the first round.
        max_bytes: a file that would grow beyond this is renamed (rounds.jsonl to rounds.1.jsonl, the next to
            rounds.2.jsonl and so on), and the chain goes on in a new one; None never does that.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "rounds.jsonl"
        >>> journal = Journal(path)
        >>> journal.write(journal.seal({"round": 1, "rule": "tq", "clients": []}))
        >>> [report.round for report in read_journal(path).rounds], verify_journal(path)
        ([1], [])
    """

    def __init__(self, path: str | Path, *, max_bytes: int | None = None) -> None:
        self.path = Path(path)
        self.max_bytes = max_bytes
        self.notes: list[str] = []
        """What was repaired."""
        self.head, self.seq, self._size = START, 0, 0
        self._go_on()

    def seal(self, entry: Mapping[str, Any]) -> bytes:
        """The next line, which is not written yet."""
        numbered = {"journal": VERSION, "seq": self.seq, **entry, "prev": self.head}
        body = json.dumps(numbered, separators=(",", ":"), allow_nan=False).encode()[:-1]
        return body + b',"hash":"' + hashlib.sha256(body).hexdigest().encode() + b'"}\n'

    def write(self, line: bytes) -> None:
        """Write a sealed line, and wait until it is on the disk."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        there = self.path.stat().st_size if self.path.exists() else 0
        if there not in (0, self._size):
            raise OSError(f"another process writes to {self.path}")
        self._size = there
        if self.max_bytes is not None and self._size and self._size + len(line) > self.max_bytes:
            self.path.rename(name_part(self.path, len(list_parts(self.path)) + 1))
            self._size = 0
        with self.path.open("ab", buffering=0) as file:
            try:
                written = 0
                while written < len(line):
                    written += file.write(line[written:])
                os.fsync(file.fileno())
            except OSError:
                file.truncate(self._size)  # half a line, as on a full disk, would be in the next one's way
                raise
        self._size += len(line)
        self.head, self.seq = read_hash(line), self.seq + 1

    def _go_on(self) -> None:
        """Take up the chain where the last whole line leaves it, and end the file in a newline."""
        last = read_last(self.path)
        if last is not None:
            self.head, self.seq = read_hash(last), json.loads(last)["seq"] + 1
        data = self.path.read_bytes() if self.path.is_file() else b""
        torn = data[data.rfind(b"\n") + 1 :]
        ours = torn.startswith(MARK) or MARK.startswith(torn)
        if data and last is None and not (ours and torn == data):
            raise ValueError(f"{self.path} must be a journal or not there yet, got other contents")
        self._size = len(data)
        if torn and ours and not read_hash(torn):
            self._size -= len(torn)
            os.truncate(self.path, self._size)
            self.notes.append(f"the last line of {self.path} was torn after {len(torn)} bytes and is cut off")
        elif torn:  # all of it but its end, or bytes that are not ours to delete
            with self.path.open("ab") as file:
                self._size += file.write(b"\n")
            self.notes.append(f"the last line of {self.path} had no end and got one")


def read_journal(path: str | Path) -> JournalContents:
    """The rounds in a journal, in order, those of its older parts first; lines that hold none are counted."""
    reports = [read_round(line) for _, _, line in _list_lines(Path(path))]
    rounds = tuple(report for report in reports if report is not None)
    return JournalContents(rounds, len(reports) - len(rounds))


def read_round(line: bytes) -> RoundReport | None:
    """The round that a line holds; None where it holds none."""
    try:
        return RoundReport.from_entry(json.loads(line))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def verify_journal(path: str | Path, *, head: str | None = None) -> list[str]:
    """What is wrong with the chain, in sentences: lines that were changed, and where some are missing.

    That the last lines were cut off does not show in the file itself: give as `head` the hash of the last line, which
    was kept elsewhere.
    """
    faults, before = [], START
    for file, number, line in _list_lines(Path(path)):
        where = f"line {number} of {file.name}"
        if not (own := read_hash(line)):
            faults.append(f"{where} is torn or was changed")
        tail = _TAIL.search(line)
        if tail is None:
            continue
        if tail[1].decode() != before:
            faults.append(f"{where} does not follow the line before it: one is missing or was changed")
        before = own or tail[2].decode()
    if head is not None and before != head:
        faults.append(f"the last line must have the hash {head}, got {before}: lines are missing at the end")
    return faults


def read_last(path: str | Path) -> bytes | None:
    """The last line that is whole; None where there is none."""
    files = reversed(list_files(Path(path)))
    lines = (line for file in files for line in reversed(file.read_bytes().splitlines()))
    return next((line for line in lines if read_hash(line)), None)


def read_hash(line: bytes) -> str:
    """The hash at the end of a line; empty where it is not that of the line."""
    line = line.rstrip(b"\n")
    tail = _TAIL.search(line)
    if tail is None or not line.startswith(MARK):
        return ""
    own = hashlib.sha256(line[: tail.start(2) - len(b',"hash":"')]).hexdigest()
    return own if own == tail[2].decode() else ""


def read_prev(line: bytes) -> str:
    """The hash of the line before, as a line gives it."""
    tail = _TAIL.search(line.rstrip(b"\n"))
    return "" if tail is None else tail[1].decode()


def name_part(path: Path, number: int) -> Path:
    """Where the part of a journal goes that was full.

    >>> name_part(Path("rounds.jsonl"), 3).name
    'rounds.3.jsonl'
    """
    return path.with_name(f"{path.stem}.{number}{path.suffix}")


def list_parts(path: Path) -> list[Path]:
    """The parts of a journal that were full, from the first on."""
    parts: list[Path] = []
    while (part := name_part(path, len(parts) + 1)).is_file():
        parts.append(part)
    return parts


def list_files(path: Path) -> list[Path]:
    """All files of a journal, in order."""
    return [*list_parts(path), *([path] if path.is_file() else [])]


def _list_lines(path: Path) -> Iterator[tuple[Path, int, bytes]]:
    for file in list_files(path) or [path]:  # one that is not there says so
        for number, line in enumerate(file.read_bytes().splitlines(), start=1):
            if line.strip():
                yield file, number, line
