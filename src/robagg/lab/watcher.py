"""Who follows a sweep: what is called when a run starts, goes on and ends, and with each sentence for people."""

from __future__ import annotations

from collections.abc import Sequence

from robagg.lab.lines import Record
from robagg.lab.run import Run


class Watcher:
    """Follows a sweep and does nothing; a subclass shows it."""

    def begin(self, runs: Sequence[Run], todo: Sequence[Run]) -> None:
        """All runs, and those still to do."""

    def start(self, run: Run) -> None:
        """A worker has taken up a run."""

    def progress(self, run: Run, done: int, rounds: int, accuracy: float | None) -> None:
        """A run has done so many of its rounds."""

    def finish(self, run: Run, record: Record) -> None:
        """A run is over, and its record in the store."""

    def end(self) -> None:
        """The sweep is over, however it ended."""

    def say(self, text: str) -> None:
        """Something that people should know; it may come before `begin`."""
