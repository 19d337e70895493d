"""What a server remembers of each client: how often it was believed, why not, and its reputation."""

from __future__ import annotations

import dataclasses
import logging
import operator
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median_low
from typing import Any

from robagg._core.checks import is_number
from robagg.server.model import UnfitError
from robagg.server.plain import unwrap
from robagg.server.quote import quote
from robagg.server.report import RoundReport
from robagg.server.screen import Failure, Replies

EFFECTS = ("report", "weight", "quarantine")


@dataclass(frozen=True)
class Reputation:
    """How much a client's past counts: `r <- decay r + (1 - decay)` in a round in which it is believed, else `decay r`.

    It starts at 1. Rounds without a reply leave it as it is.

    Args:
        effect: "report" only shows it; "weight" makes it the client's weight; "quarantine" leaves a client out
            whose reputation fell below `below`, as if its reply were broken. In quarantine it recovers as if it were
            believed, and ends it at `release`: nobody is shut out for good.
        decay: how much of the past stays, in (0, 1).
        below: where the quarantine begins.
        release: where it ends.
    """

    effect: str = "report"
    decay: float = 0.8
    below: float = 0.5
    release: float = 0.75

    def __post_init__(self) -> None:
        if self.effect not in EFFECTS:
            raise ValueError(f"Reputation: effect must be one of {', '.join(EFFECTS)}, got {self.effect!r}")
        if not (is_number(self.decay) and 0 < self.decay < 1):
            raise ValueError(f"Reputation: decay must be a number in (0, 1), got {self.decay!r}")
        if not (is_number(self.below) and is_number(self.release) and 0 <= self.below <= self.release <= 1):
            raise ValueError(
                f"Reputation: below and release must be numbers, 0 <= below <= release <= 1, got {self.below!r} "
                f"and {self.release!r}"
            )


@dataclass
class ClientRecord:
    """One client over all rounds.

    Args:
        client: its name.
        asked: rounds in which it was asked.
        replied: rounds in which it replied.
        rejected: rounds in which it was rejected.
        believed: rounds without a reason against it: it replied, was not rejected, and the rule limited it in nothing.
        quarantined: rounds in which it was left out for its reputation.
        reputation: as it is now; 1 where nothing is held against it.
        in_quarantine: whether the next round leaves it out.
        last_round: in which it was last asked.
        last_reason: why it was last not believed, or why nothing came.
        last_distance: its last distance from the value.
        recent: of the last rounds with a reply, whether it was rejected.
        warned: whether a warning about it was given.
    """

    client: str
    asked: int = 0
    replied: int = 0
    rejected: int = 0
    believed: int = 0
    quarantined: int = 0
    reputation: float = 1.0
    in_quarantine: bool = False
    last_round: int = 0
    last_reason: str = ""
    last_distance: float | None = None
    recent: deque[bool] = field(default_factory=deque)
    warned: bool = False


class Memory:
    """Each client's record, and a warning about one that is rejected again and again.

    Args:
        warn_after: (k, m): a client rejected in k of its last m rounds gives one warning.
        reputation: what becomes of those who are rejected often.
    """

    def __init__(self, warn_after: tuple[int, int] = (3, 5), reputation: Reputation | str = "report") -> None:
        try:
            k, m = map(operator.index, warn_after)
        except (TypeError, ValueError):
            k, m = 0, 0
        if not 1 <= k <= m:
            raise ValueError(f"warn_after=(k, m) must be two whole numbers, 1 <= k <= m, got {warn_after!r}")
        self.warn_after = (k, m)
        self.reputation = reputation if isinstance(reputation, Reputation) else Reputation(reputation)
        self.clients: dict[str, ClientRecord] = {}

    def find_quarantined(self, replies: Mapping[str, Any]) -> dict[str, UnfitError]:
        """Who of those that replied is left out for now, and why."""
        if self.reputation.effect != "quarantine":
            return {}
        release = self.reputation.release
        return {
            name: UnfitError(f"in quarantine: its reputation {record.reputation:.2f} has not come back to {release}")
            for name, record in self.clients.items()
            if record.in_quarantine and name in replies and not isinstance(replies[name], Failure)
        }

    def weigh(self, replies: Replies, *, sized: bool) -> list[float] | None:
        """What each reply counts: the size that it claims, where it is sized, times its reputation, where that weighs.

        A broken reply is there to be counted against f: as one of usual size. None: all count alike.
        """
        trusts = self.reputation.effect == "weight"
        if not sized and not trusts:
            return None
        known = [reply.size for reply in replies.given if reply.size is not None] if sized else []
        usual = median_low(known) if known else 1.0
        trust = {name: record.reputation for name, record in self.clients.items()} if trusts else {}
        sizes = [reply.size if sized and reply.size is not None else usual for reply in replies.given]
        return [size * trust.get(reply.client, 1.0) for size, reply in zip(sizes, replies.given, strict=True)]

    def enter(self, report: RoundReport, logger: logging.Logger) -> RoundReport:
        """Remember a round; its report with everybody's reputation after it."""
        clients = []
        for verdict in report.clients:
            record = self.clients.setdefault(verdict.client, ClientRecord(verdict.client))
            record.asked += 1
            if verdict.reason:
                record.last_reason = verdict.reason
            if verdict.replied:
                record.replied += 1
                record.last_round = report.round
                record.last_distance = verdict.distance
                record.believed += not verdict.reason
                record.rejected += verdict.rejected and not record.in_quarantine
                record.quarantined += record.in_quarantine
                self._judge(record, verdict.rejected and not record.in_quarantine)
                self._warn(record, logger)
            clients.append(dataclasses.replace(verdict, reputation=record.reputation, quarantined=record.in_quarantine))
        return dataclasses.replace(report, clients=tuple(clients))

    def state_dict(self) -> list[dict[str, Any]]:
        """All records as plain data."""
        return [
            dataclasses.asdict(record) | {"client": unwrap(record.client), "recent": list(record.recent)}
            for record in self.clients.values()
        ]

    def load_state_dict(self, state: list[Mapping[str, Any]]) -> None:
        """Take up the records that `state_dict` gave."""
        records = [ClientRecord(**{**fields, "recent": deque(fields["recent"])}) for fields in state]
        self.clients = {record.client: record for record in records}

    def _judge(self, record: ClientRecord, rejected: bool) -> None:
        """Move the reputation, and begin or end a quarantine."""
        rule = self.reputation
        record.reputation = rule.decay * record.reputation + (1 - rule.decay) * (not rejected)
        limit = rule.release if record.in_quarantine else rule.below
        was, record.in_quarantine = record.in_quarantine, rule.effect == "quarantine" and record.reputation < limit
        if not was:
            record.recent.append(rejected)

    def _warn(self, record: ClientRecord, logger: logging.Logger) -> None:
        k, m = self.warn_after
        while len(record.recent) > m:
            record.recent.popleft()
        if sum(record.recent) >= k and not record.warned:
            record.warned = True
            logger.warning(
                "robagg: client %s was rejected in %d of its last %d rounds: it is hostile, broken, or a different "
                "population. Look at its data before you shut it out.",
                quote(record.client),
                sum(record.recent),
                len(record.recent),
            )
