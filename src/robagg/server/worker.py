"""Calls functions of the user's in a thread of their own: neither a slow one nor one that raises holds up a round."""

from __future__ import annotations

import atexit
import logging
import queue
import threading
from collections.abc import Callable
from typing import Any

WAITING = 1000
"""Calls that may wait; of a function that is slower for longer than that, calls are dropped."""


class Worker:
    """A thread that makes calls in the order in which they came; it starts with the first."""

    def __init__(self, logger: logging.Logger, *, waiting: int = WAITING) -> None:
        self.logger = logger
        self._queue: queue.Queue[tuple[str, Callable[..., Any], tuple[Any, ...]]] = queue.Queue(waiting)
        self._thread: threading.Thread | None = None
        self._dropped = 0

    def call(self, name: str, function: Callable[..., Any], *arguments: Any) -> None:
        """Have a function called, without waiting for it."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="robagg", daemon=True)
            self._thread.start()
            atexit.register(self.flush)
        try:
            self._queue.put_nowait((name, function, arguments))
        except queue.Full:
            self._dropped += 1
            if self._dropped == 1:
                self.logger.error(
                    "robagg: %s is too slow: %d calls wait, later ones are dropped", name, self._queue.maxsize
                )

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until all calls so far were made; whether they were in time."""
        if self._thread is None:
            return True
        done = threading.Event()
        try:
            self._queue.put(("flush", done.set, ()), timeout=timeout)
        except queue.Full:
            return False
        return done.wait(timeout)

    def _run(self) -> None:
        while True:
            name, function, arguments = self._queue.get()
            try:
                function(*arguments)
            except Exception:
                self.logger.exception("robagg: %s failed", name)
