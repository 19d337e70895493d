"""What a server remembers of its clients: who was rejected of late."""

from __future__ import annotations

import logging
import operator
from collections import deque

from robagg.server.quote import quote
from robagg.server.report import RoundReport


class Memory:
    """Each client's last rounds, and a warning about one that is rejected again and again.

    Args:
        warn_after: (k, m): a client rejected in k of its last m rounds gives one warning.
    """

    def __init__(self, warn_after: tuple[int, int] = (3, 5)) -> None:
        try:
            k, m = map(operator.index, warn_after)
        except (TypeError, ValueError):
            k, m = 0, 0
        if not 1 <= k <= m:
            raise ValueError(f"warn_after=(k, m) must be two whole numbers, 1 <= k <= m, got {warn_after!r}")
        self.warn_after = (k, m)
        self._recent: dict[str, deque[bool]] = {}
        self._warned: set[str] = set()

    def enter(self, report: RoundReport, logger: logging.Logger) -> None:
        """Remember a round."""
        k, m = self.warn_after
        for client in report.clients:
            if not client.replied:
                continue
            recent = self._recent.setdefault(client.client, deque(maxlen=m))
            recent.append(client.rejected)
            if sum(recent) >= k and client.client not in self._warned:
                self._warned.add(client.client)
                logger.warning(
                    "robagg: client %s was rejected in %d of its last %d rounds: it is hostile, broken, or a different "
                    "population. Look at its data before you shut it out.",
                    quote(client.client),
                    sum(recent),
                    len(recent),
                )
