"""Flower's FedAvg with a robust rule in place of the average."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg, Result

from robagg._core.rule import Rule
from robagg._core.tolerance import F
from robagg.flower import old_api, resume
from robagg.flower.inner import SHARED, average_plainly, evaluate_plainly, hand_on
from robagg.flower.messages import LOGGER, sort_messages
from robagg.flower.metrics import summarise
from robagg.flower.model import GlobalModel
from robagg.flower.sampling import ask_present, wait_for_nodes
from robagg.server import Reputation, RobustServer
from robagg.server.arguments import check_calls, check_flags
from robagg.server.callbacks import OnRound
from robagg.server.model import STATISTICS
from robagg.server.screen import screen

TIMEOUT = 600.0
"""Seconds to wait for replies. A client that dies says nothing, so every death costs a round this long."""


class RobustStrategy(FedAvg):  # type: ignore[misc,unused-ignore]
    """FedAvg whose average is a robust rule: hostile and broken clients neither move the model nor end the run.

    Args:
        rule: a rule, a chain, or its text, such as `TQ(f=2)` or `"nnm >> tq"`. There is no default: every rule has a
            weak spot, so it is a choice.
        f: for a rule given as text, how many replies may be Byzantine: a number, or a share of the replies (0.2).
        around: the strategy that gets the robust value as if it were one reply, such as `FedAdam(...)`. It then
            samples the nodes; metrics stay trimmed means, or what its own functions for them say.
        weighted: whether replies count by the numbers of examples they claim; the default counts every reply alike.
        max_weight: the largest share of all that a claim can give one reply; None: as far as f allows it.
        min_valid_replies: with fewer sound replies the round is skipped; None leaves it to the rule's own quorum.
        observe: aggregate as FedAvg (or `around`) would, and only report what the rule would have done.
        on_reject: called with round, node id and reason for each reply that is rejected, without holding up the round.
        log_file: the journal, a file that gets a JSON line for each round; `robagg show` reads it.
        state_file: a file from which a run that was killed goes on: the same command again does the rounds it lacked.
        aside: one pattern or several: arrays with such names stay out of the distances, and their median is taken.
        warn_after: (k, m): a node that is rejected in k of its last m rounds gives one warning.
        allow_unprotected: take the rule's value also where its f in force is 0 and more was asked.
        partial: whether nodes may send a part of the model: by each round (True), by the first (None), never (False).
        max_skipped: so many skipped rounds in a row end the run with an error; None never does.
        reputation: what becomes of nodes that are rejected often: "report", "weight", "quarantine", or a `Reputation`.
        max_bytes: the journal goes on in a new file before it would be larger than this.
        digests: whether the journal holds the SHA-256 of each reply's arrays.
        on_round: called with the `RoundReport` of each round; one function or several.
        fedavg_arguments: those of FedAvg. `min_available_nodes` is waited for before the first round only, so that a
            node that leaves cannot stop the run; `min_train_nodes` and `min_evaluate_nodes` in every round.
    """

    def __init__(
        self,
        rule: Rule | str,
        around: FedAvg | None = None,
        weighted: bool = False,
        max_weight: float | None = None,
        min_valid_replies: int | None = None,
        observe: bool = False,
        on_reject: Callable[[int, int, str], Any] | None = None,
        *,
        f: F = None,
        log_file: str | Path | None = None,
        aside: str | Sequence[str] = STATISTICS,
        warn_after: tuple[int, int] = (3, 5),
        state_file: str | Path | None = None,
        allow_unprotected: bool = False,
        partial: bool | None = None,
        max_skipped: int | None = 3,
        reputation: Reputation | str = "report",
        max_bytes: int | None = None,
        digests: bool = False,
        on_round: OnRound | Iterable[OnRound] = (),
        **fedavg_arguments: Any,
    ) -> None:
        old_api.refuse_old_arguments(fedavg_arguments)
        if around is not None and not isinstance(around, FedAvg):
            old_api.refuse_old_strategy(around)
        if around is not None and fedavg_arguments:
            raise ValueError(f"with `around`, give {', '.join(fedavg_arguments)} to the strategy inside")
        check_calls(on_reject, (), LOGGER)  # below stands a function around it
        check_flags(observe=observe)
        self.server = RobustServer(
            rule,
            f=f,
            weighted=weighted,
            max_weight=max_weight,
            min_valid_replies=min_valid_replies,
            allow_unprotected=allow_unprotected,
            partial=partial,
            max_skipped=max_skipped,
            reputation=reputation,
            max_bytes=max_bytes,
            digests=digests,
            state=state_file,
            aside=aside,
            warn_after=warn_after,
            journal=log_file,
            on_reject=None if on_reject is None else lambda number, name, why: on_reject(number, int(name), why),
            on_round=on_round,
            logger=LOGGER,
        )
        shared = fedavg_arguments if around is None else {name: getattr(around, name) for name in SHARED}
        super().__init__(**shared)
        self.around = around
        self.observe = observe
        self._model: GlobalModel | None = None
        self._asked: list[Message] = []
        self._gathered, self._done = False, 0
        self._resumes = self.server.round > 0
        if self._resumes:
            resume.load_strategy(around, self.server.extra)

    initialize_parameters = old_api.refuse_server_fn

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = TIMEOUT,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
    ) -> Result:
        """Run the rounds, as every strategy does; only the default timeout is shorter.

        With a `state_file` that a killed run left, only the rounds that it lacked are run, from the model it had. A run
        of which every round was skipped ends with SkippedRoundsError, unless `max_skipped` is None.
        """
        resume.check_start(initial_arrays, num_rounds)
        self._gathered, self._done = False, 0
        if self._resumes:
            self._done = self.server.round
            initial_arrays = resume.take_up(self.server.model, initial_arrays)
            LOGGER.info("robagg: %d of %d rounds are done already", min(self._done, num_rounds), num_rounds)
        else:
            self.server.begin()
        self._resumes = False
        evaluate = evaluate_fn and resume.shift_rounds(evaluate_fn, self._done)
        left = max(0, num_rounds - self._done)
        try:
            result: Result = super().start(grid, initial_arrays, left, timeout, train_config, evaluate_config, evaluate)
        finally:
            self.server.flush()
        if left:
            self.server.check_skipped(num_rounds)
        if not result.arrays:  # every round was skipped, or done before: the model was kept
            result.arrays = initial_arrays
        return resume.shift_result(result, self._done)

    def summary(self) -> None:
        """Log how the strategy is set up."""
        looking = " (looking on only)" if self.observe else ""
        LOGGER.info("\t├──> Robust rule: %s%s", self.server.rule, looking)
        if self.around is not None:
            LOGGER.info("\t├──> Its value goes to: %s", type(self.around).__name__)
        FedAvg.summary(self) if self.around is None else self.around.summary()

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Ask for training, and keep the model that is sent: replies are measured against it."""
        server_round += self._done
        self._model = GlobalModel(arrays, self.server.aside)
        configure = super().configure_train if self.around is None else self.around.configure_train
        self._asked = self._configure("train", configure, grid, server_round, arrays, config)
        return self._asked

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Ask for an evaluation."""
        server_round += self._done
        configure = super().configure_evaluate if self.around is None else self.around.configure_evaluate
        self._asked = self._configure("evaluate", configure, grid, server_round, arrays, config)
        return self._asked

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """The next model and its metrics; (None, metrics) keeps the model."""
        server_round += self._done
        messages, asked = list(replies), self._asked
        self._asked = []
        if self._model is None:
            raise RuntimeError("aggregate_train needs the model of the round: call configure_train first")
        if not messages and not asked:
            return None, None  # nobody was asked: training is switched off
        answers = sort_messages(messages, asked, size_key=self.weighted_by_key, needs_size=self.server.weighted)
        decision = self.server.decide(server_round, answers.replies, self._model, asked=answers.asked)
        arrays, metrics, why = None, MetricRecord(), ""
        if self.observe:
            inside, aggregate = self._find_plain("train")
            arrays, metrics = average_plainly(inside, aggregate, server_round, messages, self._model)
        elif decision.values is not None:
            metrics = summarise(
                self.train_metrics_aggr_fn, decision.accepted, answers.contents, self.server.rule, self.weighted_by_key
            )
            if self.around is None:
                arrays = self._model.rebuild(decision.values)
            else:
                arrays, why = hand_on(self.around, server_round, self._model, decision.values, metrics)
        kept = resume.save(self.around, self._model.arrays if arrays is None else arrays) if self.server.saves else {}
        report = self.server.enter(decision, metrics=metrics, skipped=why, observed=self.observe, **kept)
        rejected = [int(client.client) for client in report.rejected]
        return arrays, MetricRecord({**metrics, **report.to_metrics(), "robagg-rejected-nodes": rejected})

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """The trimmed mean of each metric; looking on only, what FedAvg (or `around`) makes of them."""
        server_round += self._done
        messages, asked = list(replies), self._asked
        self._asked = []
        if not messages:
            return None
        answers = sort_messages(messages, asked, size_key=self.weighted_by_key, train=False)
        screened = screen(answers.replies, None, asked=answers.asked)
        broken = [] if self.observe else [(reply.client, reply.reason) for reply in screened.given if reply.reason]
        for node, why in [*screened.failed.items(), *broken]:
            LOGGER.warning("\t> client %s has no part in the evaluation: %s", node, why)
        if self.observe:
            return evaluate_plainly(*self._find_plain("evaluate"), server_round, messages)
        if not screened.sound:
            return None
        return summarise(
            self.evaluate_metrics_aggr_fn, screened.sound, answers.contents, self.server.rule, self.weighted_by_key
        )

    def _find_plain(self, kind: Literal["train", "evaluate"]) -> tuple[FedAvg, Callable[..., Any]]:
        """The strategy that aggregates where the rule only looks on, and its own way to."""
        inside = self if self.around is None else self.around
        return inside, getattr(super() if self.around is None else inside, f"aggregate_{kind}")

    def _configure(
        self, kind: Literal["train", "evaluate"], configure: Any, grid: Grid, *arguments: Any
    ) -> list[Message]:
        least = getattr(self, f"min_{kind}_nodes")
        if getattr(self, f"fraction_{kind}") == 0:
            return []
        present = wait_for_nodes(grid, least if self._gathered else max(least, self.min_available_nodes))
        self._gathered = True
        return ask_present(self if self.around is None else self.around, configure, least, *arguments, present)
