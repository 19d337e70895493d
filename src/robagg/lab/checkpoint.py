"""The state of a long run on disk, so that one that is stopped goes on where it was."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pickle
import time
from pathlib import Path
from typing import Any

import torch

from robagg.training import Loop, Trace


class Checkpoint:
    """Writes a loop's state at its evaluations, once a while; making one connects it with the loop.

    Args:
        folder: where it is written, under the run's key.
        key: the run's key.
        environment: a state is only taken up in the environment it was written in, since another gives other digits.
        loop: the loop whose state it is.
        patience: seconds between two writings, and before the first: short runs write none.
    """

    def __init__(self, folder: Path, key: str, environment: dict[str, Any], loop: Loop, patience: float) -> None:
        self.path = locate(folder, key)
        self.environment, self.loop, self.patience = environment, loop, patience
        self.before = 0.0
        """Seconds spent before the run was taken up."""
        self._begin = self._last = time.perf_counter()
        loop.checkpoint = self.keep

    def take_up(self) -> dict[str, Any] | None:
        """What was kept, for `Loop.run(resume=...)`; None where there is nothing that can be used."""
        try:
            saved = torch.load(self.path, map_location="cpu", weights_only=True)
        except FileNotFoundError:
            return None
        except (OSError, RuntimeError, EOFError, ValueError, KeyError, pickle.UnpicklingError):
            return None  # torn: the run begins again
        if saved["environment"] != self.environment:
            return None
        self.before = saved["seconds"]
        self.loop.notes = saved["notes"]
        state: dict[str, Any] = saved["state"]
        return state | {"trace": Trace(**state["trace"])}

    def keep(self, state: dict[str, Any]) -> None:
        """Write the state if it is time; a disk that is full or not there costs the checkpoint, not the run."""
        now = time.perf_counter()
        if now - self._last < self.patience:
            return
        trace = {field.name: getattr(state["trace"], field.name) for field in dataclasses.fields(Trace)}
        saved = {
            "state": state | {"trace": trace},
            "notes": list(self.loop.notes),
            "seconds": now - self._begin + self.before,
            "environment": self.environment,
        }
        draft = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            torch.save(saved, draft)
            draft.replace(self.path)
        except (OSError, RuntimeError) as error:
            draft.unlink(missing_ok=True)
            note = f"no checkpoint could be written: {error}"
            if note not in self.loop.notes:
                self.loop.notes.append(note)
        self._last = time.perf_counter()


def locate(folder: Path, key: str) -> Path:
    """The file of a run's state."""
    return folder / f"{key}.pt"


def clean(folder: Path, key: str) -> None:
    """Delete a run's state, and the folder with the last one."""
    with contextlib.suppress(OSError):
        for file in folder.glob(f"{key}.pt*"):
            file.unlink(missing_ok=True)
        folder.rmdir()
