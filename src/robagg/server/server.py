"""A server of one's own: replies by client name go in, the next model and a verdict on every client come out."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from robagg._core.checks import check_positive, is_whole
from robagg._core.rule import Rule, SortedRule, parse
from robagg._core.tolerance import F
from robagg.server.decide import decide
from robagg.server.journal import Journal
from robagg.server.logs import log_report
from robagg.server.memory import Memory
from robagg.server.metrics import summarise_metrics
from robagg.server.model import STATISTICS, Flat, Model, read_patterns
from robagg.server.report import RoundReport
from robagg.server.screen import Replies, Screened, screen
from robagg.server.worker import Worker

OnReject = Callable[[int, str, str], Any]
"""Called with the round, the client's name and the reason."""
OnRound = Callable[[RoundReport], Any]
"""Called with the report of every round."""


@dataclass(frozen=True)
class RoundResult:
    """What came of a round."""

    model: Any
    """The next model, of the kind that was given; the same object where the round was skipped."""
    report: RoundReport
    """The verdict on every client."""

    @property
    def skipped(self) -> str:
        """Why the round was skipped; empty where it was not."""
        return self.report.skipped


@dataclass(frozen=True)
class Decision:
    """A round before it is entered: what an adapter still makes a model of."""

    values: dict[str, Flat] | None
    """Every array of the model, flat; None where the round is skipped."""
    report: RoundReport
    replies: Replies
    state: Any
    """What a rule that remembers wants back."""

    @property
    def accepted(self) -> list[Screened]:
        """The replies that were not rejected."""
        rejected = {client.client for client in self.report.rejected}
        return [reply for reply in self.replies.given if reply.client not in rejected]


class RobustServer:
    """Aggregates rounds robustly, and keeps what a server has to keep: who was rejected, the journal, warnings.

    Args:
        rule: a rule, a chain, or its text, such as `TQ(f=2)` or `"nnm >> tq"`.
        f: for a rule given as text, how many replies may be Byzantine: a number, or a share of the replies (0.2).
        weighted: weigh believed replies by the sizes they claim; the default counts every reply alike.
        max_weight: the largest share of all that a claim can lift one reply to, where the rule alone gives it less.
        min_valid_replies: with fewer sound replies the round is skipped; None leaves it to the rule's own quorum.
        allow_unprotected: take the rule's value also where its f in force is 0 and more was asked.
        aside: one pattern or several: arrays with such names stay out of the distances, and their median is taken.
        warn_after: (k, m): a client that is rejected in k of its last m rounds gives one warning.
        journal: a file that gets a JSON line for each round.
        max_bytes: the journal goes on in a new file before it would be larger than this.
        on_reject: called with round, client and reason for each reply that is rejected, in a thread of its own.
        on_round: called with the report of each round, in that thread; one function or several.
        logger: where the server writes; default: the logger `robagg`.

    Example:
        >>> server = RobustServer("tq", f=1)
        >>> model = {"w": torch.zeros(2)}
        >>> replies = {name: {"w": torch.tensor([1.0, x])} for name, x in zip("abcd", [1.0, 1.1, 1.2, 1e30])}
        >>> result = server.aggregate(1, replies, model=model)
        >>> result.model["w"].round(decimals=1), [client.client for client in result.report.rejected]
        (tensor([1.0000, 1.1000]), ['d'])
    """

    def __init__(
        self,
        rule: Rule | str,
        *,
        f: F = None,
        weighted: bool = False,
        max_weight: float = 0.1,
        min_valid_replies: int | None = None,
        allow_unprotected: bool = False,
        aside: str | Sequence[str] = STATISTICS,
        warn_after: tuple[int, int] = (3, 5),
        journal: str | Path | None = None,
        max_bytes: int | None = None,
        on_reject: OnReject | None = None,
        on_round: OnRound | Iterable[OnRound] = (),
        logger: logging.Logger | None = None,
    ) -> None:
        if isinstance(rule, Rule) and f is not None:
            raise ValueError(f"f goes with a rule given as text; {rule} has its own")
        self.rule = parse(rule, f=f)
        if weighted and isinstance(self.rule.core, SortedRule):
            raise ValueError(f"weighted=True wants a rule that gives whole replies a weight; {self.rule} sorts numbers")
        if min_valid_replies is not None and not (is_whole(min_valid_replies) and min_valid_replies >= 1):
            raise ValueError(f"min_valid_replies must be a whole number, at least 1, got {min_valid_replies!r}")
        check_positive(max_weight=max_weight)
        self.max_weight = max_weight if weighted else None
        self.min_valid_replies = min_valid_replies or 1
        self.allow_unprotected = allow_unprotected
        self.aside = read_patterns(aside)
        self.logger = logging.getLogger("robagg") if logger is None else logger
        self.memory = Memory(warn_after)
        self.run = uuid.uuid4().hex[:12]
        """The id of the run, in every line of the journal."""
        self.on_reject = on_reject
        self.on_round = (on_round,) if callable(on_round) else tuple(on_round)
        self._worker = Worker(self.logger)
        self._state: Any = None
        self._warned = False
        self._journal = self._open(journal, max_bytes)

    @property
    def weighted(self) -> bool:
        """Whether claimed sizes count, so that every reply must say one."""
        return self.max_weight is not None

    def aggregate(
        self,
        round_number: int,
        replies: Mapping[str, Any],
        *,
        model: Mapping[str, Any],
        asked: Iterable[str] | None = None,
    ) -> RoundResult:
        """The next model with the verdict on every client; in a skipped round the model that was given.

        Args:
            round_number: which it is, for the log and the journal.
            replies: by client name a `Reply`, its arrays alone (such as a state dict), or a `Failure`.
            model: what the clients started from.
            asked: the names of those who were asked; None: of those who replied. Replies of others do not count.
        """
        decision = self.decide(round_number, replies, Model(model, self.aside), asked=asked)
        metrics = summarise_metrics([reply.metrics for reply in decision.accepted], self.rule)
        report = self.enter(decision, metrics=metrics)
        return RoundResult(
            model if decision.values is None else Model(model, self.aside).rebuild(decision.values), report
        )

    def decide(
        self, round_number: int, replies: Mapping[str, Any], model: Model, *, asked: Iterable[str] | None = None
    ) -> Decision:
        """The rule's value on the screened replies, not entered anywhere yet: for adapters, which call `enter` next."""
        screened = screen(replies, model, asked=asked, needs_size=self.weighted)
        combined, report = decide(
            self.rule,
            model,
            screened,
            min_valid_replies=self.min_valid_replies,
            allow_unprotected=self.allow_unprotected,
            state=self._state,
            max_weight=self.max_weight,
        )
        report = replace(report, round=round_number, run=self.run)
        if combined is None:
            return Decision(None, report, screened, self._state)
        return Decision(combined.values, report, screened, combined.state)

    def enter(
        self, decision: Decision, *, metrics: Mapping[str, Any], skipped: str = "", observed: bool = False
    ) -> RoundReport:
        """End a round: log it, remember it, write it to the journal, and call those who asked for it.

        Args:
            decision: what `decide` gave.
            metrics: names and numbers, or lists of numbers.
            skipped: why the round is skipped all the same.
            observed: whether the rule only looked on.
        """
        report = replace(
            decision.report,
            skipped=decision.report.skipped or skipped,
            observed=observed,
            metrics=dict(metrics),
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )
        self._state = decision.state
        log_report(self.logger, report)
        self.memory.enter(report, self.logger)
        self._warn_of_equal_shares(report)
        self._write(report)
        if self.on_reject is not None:
            for client in report.rejected:
                self._worker.call("on_reject", self.on_reject, report.round, client.client, client.reason)
        for function in self.on_round:
            self._worker.call("on_round", function, report)
        return report

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until `on_reject` and `on_round` were called for all rounds so far; whether they were in time."""
        return self._worker.flush(timeout)

    def _open(self, path: str | Path | None, max_bytes: int | None) -> Journal | None:
        if path is None:
            return None
        try:
            journal = Journal(path, max_bytes=max_bytes)
        except OSError as error:
            self.logger.error("robagg: the journal cannot be opened, and none is written: %s", error)
            return None
        for note in journal.notes:
            self.logger.warning("robagg: %s", note)
        return journal

    def _write(self, report: RoundReport) -> None:
        """What goes wrong in writing must not end the run."""
        if self._journal is None:
            return
        try:
            self._journal.write(self._journal.seal(report.to_entry()))
        except OSError as error:
            self.logger.error("robagg: the verdict of round %d could not be written: %s", report.round, error)

    def _warn_of_equal_shares(self, report: RoundReport) -> None:
        """Say once that the cap on claims leaves nothing of them."""
        believed = sum(client.weight > 0 for client in report.clients)
        if self.max_weight is not None and believed and believed * self.max_weight <= 1 and not self._warned:
            self._warned = True
            self.logger.warning(
                "robagg: round %d: weighted=True changes nothing, because max_weight=%g is not above the equal share "
                "of %d believed replies. Later rounds are not warned of.",
                report.round,
                self.max_weight,
                believed,
            )
