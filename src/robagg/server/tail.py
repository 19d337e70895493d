"""Follows a journal that a run is writing: each reading gives the rounds that came since the last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from robagg.server.journal import list_files, read_hash, read_round
from robagg.server.report import RoundReport

BEGINNING = 512
"""Bytes by which a journal is known again: they hold the id of its run and the time of its first round."""


class JournalTail:
    """The end of a journal, which moves on with the run.

    A journal only grows, and what is full is renamed, so one number says how much of all its files was read.

    Example:
        >>> import tempfile
        >>> from robagg.server import Journal
        >>> path = Path(tempfile.mkdtemp()) / "rounds.jsonl"
        >>> tail = JournalTail(path)
        >>> journal = Journal(path)
        >>> for number in (1, 2):
        ...     journal.write(journal.seal({"round": number, "rule": "tq", "clients": []}))
        ...     print([report.round for report in tail.read()])
        [1]
        [2]
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.strange = 0
        """How many lines held no round."""
        self._read = 0
        self._beginning = b""

    def is_replaced(self) -> bool:
        """Whether another journal stands where this one was: what was read of it does not count any more."""
        files = list_files(self.path)
        try:
            size = sum(file.stat().st_size for file in files)
            with files[0].open("rb") as stream:
                beginning = stream.read(BEGINNING)
        except (IndexError, FileNotFoundError):
            return self._read > 0
        if size < self._read or not beginning.startswith(self._beginning):
            return True
        self._beginning = beginning[: self._read]
        return False

    def read(self) -> Iterator[RoundReport]:
        """The rounds that were not read yet; the last line is left until all of it is there."""
        skip = self._read
        files = list_files(self.path)
        for file in files:
            with suppress(FileNotFoundError), file.open("rb") as stream:
                if list_files(self.path) != files:  # it was renamed meanwhile: next time
                    return
                size = stream.seek(0, 2)
                if skip >= size:
                    skip -= size
                    continue
                stream.seek(skip)
                skip = 0
                for line in stream:
                    if file == files[-1] and not line.endswith(b"\n") and not read_hash(line):
                        return
                    self._read += len(line)
                    report = read_round(line)
                    if report is not None:
                        yield report
                    elif line.strip():
                        self.strange += 1
