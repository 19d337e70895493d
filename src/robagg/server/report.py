"""What a round decided about every client: the log, the metrics and the journal are made of it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from robagg._core.rule import Rule
from robagg._core.sorted import SortedRule
from robagg._core.tolerance import F
from robagg._core.verdict import Verdict
from robagg.server.gram import Gram
from robagg.server.plain import unwrap
from robagg.server.quote import quote
from robagg.server.screen import Replies, find_fault

MOST = 20
"""How many clients that were not asked are named: anybody can send any number."""


@dataclass(frozen=True)
class ClientVerdict:
    """One client in one round.

    Args:
        client: its name.
        weight: its share in the value. Rules that sort numbers give every sound reply the same say.
        distance: from its reply to the value (for rules that walk, to the centre of the last step); None where there is
            none.
        rejected: broken, or outside the rule's radius. A client that did not answer, or was just not chosen, is not.
        reason: why it was not believed, or why nothing came; empty for a client that was believed.
        replied: whether a reply came, usable or not.
        size: how many examples it claimed to have.
        aside: what is odd about its arrays that stay out of the distances, of which the median is taken all the same.
        reputation: after the round; 1 where nothing is held against it.
        quarantined: whether it is left out of the next round.
        digest: SHA-256 of the bytes of its arrays, in the order of the model's, where digests are asked for.
    """

    client: str
    weight: float = 0.0
    distance: float | None = None
    rejected: bool = False
    reason: str = ""
    replied: bool = True
    size: float | None = None
    aside: str = ""
    reputation: float = 1.0
    quarantined: bool = False
    digest: str = ""


@dataclass(frozen=True)
class RoundReport:
    """One round: a line of the journal.

    Args:
        rule: the rule's text.
        clients: the verdict on everybody who was asked.
        unasked: some of those who sent something and were not asked: it does not count.
        round: its number.
        run: the id of the run, the same in all of its rounds.
        time: when the round ended, in UTC.
        f: the f in force; None where the rule came to no value.
        f_asked: the f that the rule was given: a number, a share of the replies, or None for the most that n allows.
        unprotected: why nobody is tolerated though somebody was to be; empty where the protection that was asked for is
            there.
        tau: the radius in the last step, for rules that have one.
        median_weight: the median's share in the value.
        note: what holds for all clients at once, such as that none lay within tau.
        skipped: why the round was skipped and the model kept; empty where it was not.
        observed: whether the rule only looked on, and the model came from plain averaging.
        metrics: names and numbers, or lists of numbers, of all clients together.
        gram: what replays need of the replies; None where there is no journal, or no value.
    """

    rule: str
    clients: tuple[ClientVerdict, ...]
    unasked: tuple[str, ...] = ()
    round: int = 0
    run: str = ""
    time: str = ""
    f: int | None = None
    f_asked: F = 0
    unprotected: str = ""
    tau: float | None = None
    median_weight: float = 0.0
    note: str = ""
    skipped: str = ""
    observed: bool = False
    metrics: Mapping[str, Any] = field(default_factory=dict)
    gram: Gram | None = None

    @property
    def asked(self) -> int:
        """How many clients were asked."""
        return len(self.clients)

    @property
    def answered(self) -> int:
        """How many clients replied: n."""
        return sum(client.replied for client in self.clients)

    @property
    def rejected(self) -> list[ClientVerdict]:
        return [client for client in self.clients if client.rejected]

    def to_entry(self) -> dict[str, Any]:
        """Fields as JSON has them, those first by which people look for a round."""
        entry = {"round": self.round, "run": self.run, "time": self.time}
        entry |= {"asked": self.asked, "answered": self.answered}
        return entry | {name.name: _plain(getattr(self, name.name)) for name in dataclasses.fields(self)}

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> RoundReport:
        """The report of an entry; fields of later versions are left out."""
        clients = tuple(ClientVerdict(**_known(ClientVerdict, client)) for client in entry["clients"])
        gram = None if entry.get("gram") is None else Gram.from_entry(entry["gram"])
        return cls(
            **_known(cls, entry) | {"clients": clients, "unasked": tuple(entry.get("unasked", ())), "gram": gram}
        )

    def to_metrics(self) -> dict[str, int | float]:
        """What a history of metrics can hold of it."""
        numbers: dict[str, int | float] = {"robagg-replies": self.answered, "robagg-rejected": len(self.rejected)}
        numbers["robagg-skipped"] = int(bool(self.skipped))
        if self.f is not None:
            numbers["robagg-f"] = self.f
        if self.tau is not None:
            numbers["robagg-tau"] = self.tau
        return numbers

    def __str__(self) -> str:
        """A table: client, weight, distance, reason."""
        lines = [f"round {self.round}: {self.rule}, {self.answered} replies, {len(self.rejected)} rejected"]
        for client in self.clients:
            distance = "-" if client.distance is None else f"{client.distance:.4g}"
            lines.append(
                f"{quote(client.client):>22}  {100 * client.weight:>6.2f}%  {distance:>9}  {client.reason}".rstrip()
            )
        skipped = self.skipped and f"skipped: {self.skipped}"
        return "\n".join([*lines, *filter(None, (self.unprotected, self.note, skipped))])


def report_verdict(rule: Rule, replies: Replies, verdict: Verdict, aside: Mapping[str, str]) -> RoundReport:
    """The report of a round in which the rule came to a value."""
    broken = verdict.distances.isnan()
    # Where all lie outside, the value is the median of all: nobody was rejected.
    rejected = broken if bool(verdict.rejected.all()) else verdict.rejected
    alike = (
        1 / max(1, int((~broken).sum())) if not verdict.weights.any() and isinstance(rule.core, SortedRule) else None
    )
    clients = [
        ClientVerdict(
            client=reply.client,
            weight=float(verdict.weights[i]) if alike is None else alike * (not broken[i]),
            distance=_number(float(verdict.distances[i])),
            rejected=bool(rejected[i]),
            reason=verdict.reasons[i],
            size=reply.size,
            aside=aside.get(reply.client, ""),
            digest=reply.digest,
        )
        for i, reply in enumerate(replies.given)
    ]
    return RoundReport(
        rule=str(rule),
        clients=(*clients, *_failures(replies)),
        unasked=tuple(map(quote, replies.unasked[:MOST])),
        f=verdict.f,
        f_asked=verdict.f_asked,
        unprotected=verdict.unprotected,
        tau=None if verdict.tau is None else _number(verdict.tau),
        median_weight=verdict.median_weight,
        note=verdict.note,
    )


def report_skip(rule: Rule, replies: Replies, why: str) -> RoundReport:
    """The report of a round in which the rule came to no value; it names every broken reply all the same."""
    faults = [(reply, find_fault(reply)) for reply in replies.given]
    clients = [
        ClientVerdict(reply.client, rejected=bool(why), reason=why, size=reply.size, digest=reply.digest)
        for reply, why in faults
    ]
    return RoundReport(
        rule=str(rule),
        clients=(*clients, *_failures(replies)),
        unasked=tuple(map(quote, replies.unasked[:MOST])),
        f_asked=rule.core.f_asked,
        skipped=why,
    )


def _failures(replies: Replies) -> Sequence[ClientVerdict]:
    return [ClientVerdict(client, reason=why, replied=False) for client, why in replies.failed.items()]


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _plain(value: Any) -> Any:
    """As JSON has it: None for a number that is not finite, such as a function of the user's may give."""
    if dataclasses.is_dataclass(value):
        return {name.name: _plain(getattr(value, name.name)) for name in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return _number(value) if isinstance(value, float) else unwrap(value)


def _known(cls: type, entry: Mapping[str, Any]) -> dict[str, Any]:
    names = {name.name for name in dataclasses.fields(cls)}
    return {name: value for name, value in entry.items() if name in names}
