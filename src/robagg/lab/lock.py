"""Keeps two writers of one file apart."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO


class StoreBusyError(RuntimeError):
    """Another process writes to the store."""


def lock(file: BinaryIO, path: Path) -> Callable[[], None]:
    """Lock an open file for this process alone, or raise `StoreBusyError`; gives what unlocks it.

    A lock of the operating system ends with its process, however that ends. Where there is none (no `fcntl`), a file
    beside it holds the process's number, and one whose process is gone counts for nothing.
    """
    try:
        fcntl: Any = importlib.import_module("fcntl")
    except ImportError:
        return lock_beside(path)
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise StoreBusyError(_explain(path)) from error
    return lambda: fcntl.flock(file.fileno(), fcntl.LOCK_UN)


def lock_beside(path: Path) -> Callable[[], None]:
    """Lock by a file of its own, `path` with `.lock` behind it."""
    beside = path.with_name(path.name + ".lock")
    for _ in range(2):
        try:
            handle = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError as error:
            if _is_alive(beside):
                raise StoreBusyError(_explain(path)) from error
            beside.unlink(missing_ok=True)
            continue
        with os.fdopen(handle, "w") as file:
            file.write(str(os.getpid()))
        return lambda: beside.unlink(missing_ok=True)
    raise StoreBusyError(_explain(path))


def _is_alive(beside: Path) -> bool:
    with contextlib.suppress(OSError, ValueError):
        owner = int(beside.read_text())
        try:
            os.kill(owner, 0) if os.name == "posix" else None
        except ProcessLookupError:
            return False
    return True  # not to be told: leave it alone


def _explain(path: Path) -> str:
    return f"another process is writing to {path}: wait until it is done, or choose another store"
