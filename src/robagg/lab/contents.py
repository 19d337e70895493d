"""What a store's file holds: its records, and sentences about every line that is none."""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from robagg.lab.lines import DAMAGED, JOINED, MARK, STRANGE, OtherVersion, Record, is_ours, read_line
from robagg.lab.run import RESULTS_VERSION

WRONG = {
    STRANGE: "lines that are no record were skipped",
    DAMAGED: "lines that were changed after they were written, or are cut, were left out",
    JOINED: "lines that hold more than one record were left out",
}
"""What is said of lines of each kind."""


@dataclass
class Contents:
    """What a store holds."""

    records: dict[str, Record] = field(default_factory=dict)
    """By key; a run that failed and was done again is there once, with its last record."""
    notes: list[str] = field(default_factory=list)
    """What was skipped, in sentences."""
    lines: dict[str, int] = field(default_factory=dict)
    """In which line of the file each record stands, by key."""


def read_file(path: Path, without: Sequence[str] = (), look: Callable[[Record], object] | None = None) -> Contents:
    """Every record of this version; a file that does not exist is an empty store.

    Args:
        path: the file; one that has lines, but none that begins as a record does, is refused.
        without: fields that are left out of the records, such as `trace`, which is most of their size.
        look: called with each record before they are.
    """
    contents, wrong, versions = Contents(), dict[str, list[int]](), Counter[str]()
    repeated, empty, ours = list[int](), True, False
    for number, line, ended in read_lines(path):
        empty, ours = False, ours or line.startswith(MARK) or (not ended and is_ours(line))
        record = read_line(line)
        if isinstance(record, OtherVersion):
            versions[record] += 1
        elif record == DAMAGED and not ended:
            contents.notes.append(f"the last line is torn after {len(line)} bytes and is left out")
        elif isinstance(record, str):
            wrong.setdefault(record, []).append(number)
        elif contents.records.get(record["key"], {}).get("status") != "ok":
            if look is not None:
                look(record)
            for name in without:
                record.pop(name, None)
            contents.records[record["key"]] = record
            contents.lines[record["key"]] = number
        else:
            repeated.append(number)
    if not (empty or ours):
        raise ValueError(f"{path} must be a store of runs, got a file in which no line is a record")
    for version, times in versions.items():
        contents.notes.append(
            f"{times} line{'s are' * (times > 1) or ' is'} of results version {version} and left out; "
            f"this is version {RESULTS_VERSION}"
        )
    contents.notes += [f"{WRONG[kind]}: {_list(numbers)}" for kind, numbers in sorted(wrong.items())]
    if repeated:
        contents.notes.append(f"lines that repeat a run that has a result before were left out: {_list(repeated)}")
    return contents


def read_lines(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    """(number, bytes, whether a newline ended it) of each line that is not empty."""
    refuse_special(path)
    if path.exists():
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line.rstrip(b"\r\n"), line.endswith(b"\n")


def refuse_special(path: Path) -> None:
    """A device or a pipe may have no end, and keeps nothing."""
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        kind = "a folder" if path.is_dir() else "a device, a pipe or a socket"
        raise ValueError(f"a store must be a file, got {path}, which is {kind}")


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + ", ..." * (len(numbers) > 8)
