"""What a server keeps on disk: the journal, and a state from which a killed server goes on, so that both agree."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import torch

from robagg.server.journal import Journal, read_hash, read_prev
from robagg.server.report import RoundReport

Saved = dict[str, Any]


class Files:
    """Writes a round to the journal and saves the state after it; what goes wrong there must not end the run.

    The state holds the line of its round and is saved first: of a server that is killed between the two, the next one
    writes the line. So none is lost, and none is there twice.

    Args:
        journal: the journal's file; None writes none.
        state: the file of the state; None saves none.
        max_bytes: how large a file of the journal may grow.
        logger: where it says what went wrong.
    """

    def __init__(
        self, journal: str | Path | None, state: str | Path | None, max_bytes: int | None, logger: logging.Logger
    ) -> None:
        self.state = None if state is None else Path(state)
        self.logger = logger
        self.journal: Journal | None = None
        try:
            self.journal = None if journal is None else Journal(journal, max_bytes=max_bytes)
        except OSError as error:
            logger.error("robagg: the journal cannot be opened, and none is written: %s", error)
        for note in self.journal.notes if self.journal else ():
            logger.warning("robagg: %s", note)

    def load(self) -> Saved | None:
        """The state that the last server saved, whose line the journal then has."""
        if self.state is None or not self.state.exists():
            return None
        saved = read_state(self.state)
        line = saved.pop("line").encode()
        if self.journal is not None and line:
            if read_prev(line) == self.journal.head:
                self._write(line)
            elif read_hash(line) != self.journal.head:
                self.logger.error(
                    "robagg: %s does not end with round %d, as %s does: lines are missing, or were added",
                    self.journal.path,
                    saved["round"],
                    self.state,
                )
        return saved

    def save(self, report: RoundReport, state: Saved | None) -> None:
        """Save the state, where one is kept, and write the line of the round."""
        line = b"" if self.journal is None else self.journal.seal(report.to_entry())
        try:
            if self.state is not None and state is not None:
                write_state(self.state, state | {"line": line.decode()})
        except (OSError, RuntimeError) as error:  # torch.save raises the second where a disk is full
            self.logger.error("robagg: the state after round %d could not be saved: %s", report.round, error)
        self._write(line)

    def _write(self, line: bytes) -> None:
        if self.journal is None:
            return
        try:
            self.journal.write(line)
        except OSError as error:
            self.logger.error("robagg: a round could not be written to the journal: %s", error)


def read_state(path: Path) -> Saved:
    """What `write_state` wrote; no code that may be in the file is run."""
    try:
        saved = torch.load(path, weights_only=True, map_location="cpu")
        missing = {"version", "line"} - saved.keys()
    except OSError as error:
        raise OSError(f"the state {path} cannot be read: {error}") from None
    except Exception:  # of another file anything may come
        missing = {"version", "line"}
    if missing:
        raise ValueError(f"{path} must be a state that a RobustServer saved, or not there yet, got other contents")
    return dict(saved)


def write_state(path: Path, state: Saved) -> None:
    """Put a state in the place of the last one, at once: whoever is killed leaves one of the two."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".new")
    with beside.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
