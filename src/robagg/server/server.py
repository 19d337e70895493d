"""A server of one's own: replies by client name go in, the next model and a verdict on every client come out."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from robagg._core.claims import check_max_weight, check_takes_weights
from robagg._core.rule import Rule, parse
from robagg._core.tolerance import F
from robagg.server.agreement import Agreement
from robagg.server.arguments import check_counts, check_files, check_flags, check_state, read_asked, read_round
from robagg.server.callbacks import Callbacks, OnReject, OnRound
from robagg.server.decide import decide_without
from robagg.server.files import Files
from robagg.server.logs import log_report
from robagg.server.memory import ClientRecord, Memory, Reputation
from robagg.server.metrics import summarise_metrics
from robagg.server.model import STATISTICS, Model, read_patterns
from robagg.server.plain import from_plain, to_plain
from robagg.server.report import RoundReport
from robagg.server.round import Decision, RoundResult, SkippedRoundsError
from robagg.server.screen import screen


class RobustServer:
    """Aggregates rounds robustly, and keeps what a server has to keep: who was rejected, the journal, warnings.

    Args:
        rule: a rule, a chain, or its text, such as `TQ(f=2)` or `"nnm >> tq"`.
        f: for a rule given as text, how many replies may be Byzantine: a number, or a share of the replies (0.2).
        weighted: whether replies count by the sizes they claim; the default counts every reply alike.
        max_weight: the largest share of all that a claim can give one reply; None: as far as f allows it.
        min_valid_replies: with fewer sound replies the round is skipped; None leaves it to the rule's own quorum.
        allow_unprotected: take the rule's value also where its f in force is 0 and more was asked.
        partial: whether clients may send some of the model's arrays, the same for all: True decides that in each
            round by what most replies hold, None by the first round, False never. The other arrays stay as they are.
        max_skipped: so many skipped rounds in a row end the run with `SkippedRoundsError`; None never does.
        aside: one pattern or several: arrays with such names stay out of the distances, and their median is taken.
        warn_after: (k, m): a client that is rejected in k of its last m rounds gives one warning.
        reputation: what becomes of clients that are rejected often: "report", "weight", "quarantine", or a
            `Reputation`.
        journal: a file that gets a JSON line for each round.
        max_bytes: the journal goes on in a new file before it would be larger than this.
        gram: whether its lines hold the Gram matrix of the replies, for replays, at one more pass over them.
        digests: whether they hold the SHA-256 of each client's arrays.
        state: a file from which a server that was killed goes on; it holds the model too.
        on_reject: called with round, client and reason for each rejected reply, in a thread of its own.
        on_round: called with the report of each round, in that thread; one function or several.
        logger: where the server writes; default: the logger `robagg`.

    Example:
        >>> server = RobustServer("tq", f=1)
        >>> model = {"w": torch.zeros(2)}
        >>> replies = {name: {"w": torch.tensor([1.0, x])} for name, x in zip("abcd", [1.0, 1.1, 1.2, 1e30])}
        >>> result = server.aggregate(1, replies, model=model)
        >>> result.model["w"], [client.client for client in result.report.rejected]
        (tensor([1.0000, 1.1000]), ['d'])
    """

    def __init__(
        self,
        rule: Rule | str,
        *,
        f: F = None,
        weighted: bool = False,
        max_weight: float | None = None,
        min_valid_replies: int | None = None,
        allow_unprotected: bool = False,
        partial: bool | None = None,
        max_skipped: int | None = 3,
        aside: str | Sequence[str] = STATISTICS,
        warn_after: tuple[int, int] = (3, 5),
        reputation: Reputation | str = "report",
        journal: str | Path | None = None,
        max_bytes: int | None = None,
        gram: bool = True,
        digests: bool = False,
        state: str | Path | None = None,
        on_reject: OnReject | None = None,
        on_round: OnRound | Iterable[OnRound] = (),
        logger: logging.Logger | None = None,
    ) -> None:
        if isinstance(rule, Rule) and f is not None:
            raise ValueError(f"f goes with a rule given as text; {rule} has its own")
        self.rule = parse(rule, f=f)
        self.memory = Memory(warn_after, reputation)
        if weighted or self.memory.reputation.effect == "weight":
            check_takes_weights(self.rule)
        check_flags(weighted=weighted, allow_unprotected=allow_unprotected, gram=gram, digests=digests)
        check_counts(min_valid_replies=min_valid_replies, max_skipped=max_skipped, max_bytes=max_bytes)
        check_files(journal, state)
        self.weighted = weighted
        self.max_weight = None if max_weight is None else check_max_weight(self.rule, max_weight)
        self.agreement = Agreement(partial)
        self.max_skipped = max_skipped
        self.aside = read_patterns(aside)
        self.digests = digests
        self.logger = logging.getLogger("robagg") if logger is None else logger
        self.model: Any = None
        self.extra: Any = None
        """What an adapter saves beside: plain data."""
        self._warned = False
        self._turn = threading.Lock()
        self._callbacks = Callbacks(on_reject, on_round, self.logger)
        self._files = Files(journal, state, max_bytes, self.logger)
        self._options: Any = {"min_valid_replies": min_valid_replies or 1, "allow_unprotected": allow_unprotected}
        self._options["keep_gram"] = gram and self._files.journal is not None
        self.saves = self._files.state is not None
        self.begin()
        if (saved := self._files.load()) is not None:
            self.load_state_dict(saved)

    @property
    def clients(self) -> Mapping[str, ClientRecord]:
        """Each client's record over all rounds, with its reputation."""
        return self.memory.clients

    def begin(self) -> None:
        """Begin a run, whose first round is to come. Records of clients stay."""
        self.run = uuid.uuid4().hex[:12]
        self.round = 0
        self.skipped_in_a_row = 0
        self._state: Any = None
        self.agreement.names = None

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
        whole = Model(model, self.aside)
        with self._turn:  # a round goes on where the last one ended
            decision = self.decide(round_number, replies, whole, asked=asked)
            metrics = summarise_metrics([reply.metrics for reply in decision.accepted], self.rule)
            new = model if decision.values is None else whole.rebuild(decision.values)
            return RoundResult(new, self.enter(decision, metrics=metrics, model=new))

    def decide(
        self, round_number: int, replies: Mapping[str, Any], model: Model, *, asked: Iterable[str] | None = None
    ) -> Decision:
        """The rule's value on the screened replies, not entered anywhere yet: for adapters, which call `enter` next."""
        asked = read_asked(asked, replies)
        given = {name: replies[name] for name in asked if name in replies}
        part, hint = self.agreement.find(given, model)
        combined, screened, report = decide_without(
            self.memory.find_quarantined(replies),
            lambda every: screen(every, part, asked=asked, needs_size=self.weighted, digests=self.digests),
            lambda screened: self.memory.weigh(screened, sized=self.weighted),
            self.rule,
            part,
            replies,
            **self._options,
            state=self._state,
            max_weight=self.max_weight if self.weighted else None,
        )
        skipped = report.skipped and report.skipped + hint
        report = replace(report, round=read_round(round_number), run=self.run, skipped=skipped)
        if combined is None:
            return Decision(None, report, screened, self._state)
        self.agreement.settle(part, self.logger)
        if combined.idle and not self._warned:
            self._warned = True
            self.logger.warning("robagg: round %d: %s. Later rounds are not warned of.", round_number, combined.idle)
        return Decision(combined.values, report, screened, combined.state)

    def enter(
        self,
        decision: Decision,
        *,
        metrics: Mapping[str, Any],
        model: Any = None,
        extra: Any = None,
        skipped: str = "",
        observed: bool = False,
    ) -> RoundReport:
        """End a round: log it, remember it, write it to the journal, save the state, and call who asked for it.

        Args:
            decision: what `decide` gave.
            metrics: names and numbers, or lists of numbers.
            model: what the next round starts from, for the state.
            extra: what an adapter saves beside it.
            skipped: why the round is skipped all the same.
            observed: whether the rule only looked on.
        """
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        skipped = decision.report.skipped or skipped
        report = replace(decision.report, skipped=skipped, observed=observed, metrics=dict(metrics), time=time)
        self._state, self.round, self.model, self.extra = decision.state, report.round, model, extra
        log_report(self.logger, report)
        report = self.memory.enter(report, self.logger)
        self.skipped_in_a_row = self.skipped_in_a_row + 1 if report.skipped and not observed else 0
        self._files.save(report, self.state_dict() if self.saves else None)
        self._callbacks.enter(report)
        self.check_skipped(self.max_skipped)
        return report

    def check_skipped(self, most: int | None) -> None:
        """Raise where so many rounds in a row were skipped, unless `max_skipped` is None."""
        if most is not None and self.max_skipped is not None and self.skipped_in_a_row >= most:
            raise SkippedRoundsError.of(self.skipped_in_a_row)

    def state_dict(self) -> dict[str, Any]:
        """All that a server needs to go on, as plain data and tensors."""
        return {
            "version": 1,
            "run": self.run,
            "round": self.round,
            "rule": str(self.rule),
            "rule_state": to_plain(self._state),
            "names": None if self.agreement.names is None else sorted(self.agreement.names),
            "skipped_in_a_row": self.skipped_in_a_row,
            "warned": self._warned,
            "clients": self.memory.state_dict(),
            "model": to_plain(self.model),
            "extra": to_plain(self.extra),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where another server was; of another rule's state nothing is taken."""
        check_state(state)
        self.run, self.round, self._warned = state["run"], state["round"], state["warned"]
        self.skipped_in_a_row = state["skipped_in_a_row"]
        self.agreement.names = None if state["names"] is None else frozenset(state["names"])
        self.memory.load_state_dict(state["clients"])
        self.model, self.extra = from_plain(state["model"]), from_plain(state["extra"])
        self._state = from_plain(state["rule_state"]) if state["rule"] == str(self.rule) else None
        self.logger.info("robagg: goes on after round %d of run %s", self.round, self.run)

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until `on_reject` and `on_round` were called for all rounds so far; whether they were in time."""
        return self._callbacks.worker.flush(timeout)
