"""Calls functions of the user's in a thread of their own: neither a slow one nor one that raises costs a round."""

from __future__ import annotations

import atexit
import logging
import queue
import threading
from collections.abc import Callable, Iterable
from typing import Any

from robagg.server.arguments import check_calls
from robagg.server.report import RoundReport

OnReject = Callable[[int, str, str], Any]
"""Called with the round, the client's name and the reason."""
OnRound = Callable[[RoundReport], Any]
"""Called with the report of every round."""
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


class Callbacks:
    """Who is called after a round.

    Args:
        on_reject: called with round, client and reason for each reply that was rejected.
        on_round: called with the report; one function or several.
        logger: where it is said that one of them failed.
    """

    def __init__(
        self, on_reject: OnReject | None, on_round: OnRound | Iterable[OnRound], logger: logging.Logger
    ) -> None:
        self.on_reject = on_reject
        self.on_round = (on_round,) if callable(on_round) else tuple(on_round)
        check_calls(on_reject, self.on_round, logger)
        self.worker = Worker(logger)

    def enter(self, report: RoundReport) -> None:
        """Have everybody called, without waiting for it."""
        if self.on_reject is not None:
            for client in report.rejected:
                self.worker.call("on_reject", self.on_reject, report.round, client.client, client.reason)
        for function in self.on_round:
            self.worker.call("on_round", function, report)
