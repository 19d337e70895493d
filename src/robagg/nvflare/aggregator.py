"""NVFlare's model aggregator with a robust rule: what a site sends neither moves the model nor ends the run."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLMetaKey, ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.aggregators.model_aggregator import ModelAggregator
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType
from nvflare.app_common.utils.fl_model_utils import FLModelUtils

from robagg import F, Rule
from robagg.nvflare.context import Arrays, blank, find_folder, look_at_controllers, name_site, read_answer, read_metrics
from robagg.server import Failure, Reply, RobustServer, RoundReport, UnfitError
from robagg.server.agreement import find_part
from robagg.server.metrics import summarise_metrics
from robagg.server.model import STATISTICS, Model
from robagg.server.quote import quote
from robagg.server.screen import screen

NO_MODEL = "is no model"


class RobustAggregator(ModelAggregator):  # type: ignore[misc,unused-ignore]
    """Aggregates with a robust rule: for `RobustFedAvg`, NVFlare's `FedAvg`, `ScatterAndGather` and the recipes.

    Every argument is a number, a text or a list of them, so that it goes into a job's configuration.

    Args:
        rule: a rule, a chain, or its text, such as `TQ(f=2)` or `"nnm >> tq"`.
        f: for a rule given as text, how many replies may be Byzantine: a number, or a share of the replies (0.2).
        weighted: whether replies count by the number of steps they claim (NUM_STEPS_CURRENT_ROUND); the default
            counts every reply alike.
        max_weight: the largest share of all that a claim can give one reply; None: as far as f allows it.
        min_valid_replies: with fewer sound replies the round is skipped; None leaves it to the rule's own quorum.
        allow_unprotected: take the rule's value also where its f in force is 0 and more was asked.
        partial: whether sites may send a part of the model's arrays: True decides that in each round by what most of
            them hold, None by the first round.
        max_skipped: after so many skipped rounds in a row the run ends with an error; None bears any number.
        aside: one pattern or several: arrays with such names stay out of the distances, and their median is taken.
        warn_after: (k, m): a site that is rejected in k of its last m rounds gives one warning.
        reputation: "report", "weight" or "quarantine": what follows from a site's reputation.
        journal: a file that gets a JSON line for each round; a relative path lies in the run's folder at the server.
        max_bytes: the journal goes on in a new file before it would be larger than this.
        gram: whether the journal gets the Gram matrix of each round.
        digests: whether the journal gets the SHA-256 of what each site sent.
        state: a file from which a run that was killed goes on: with `RobustFedAvg` the same job again does the rounds
            it lacked. NVFlare's simulator empties its workspace, so give a path elsewhere.
    """

    def __init__(
        self,
        rule: Rule | str,
        f: F = None,
        weighted: bool = False,
        max_weight: float | None = None,
        min_valid_replies: int | None = None,
        allow_unprotected: bool = False,
        partial: bool | None = None,
        max_skipped: int | None = 3,
        aside: str | Sequence[str] = STATISTICS,
        warn_after: tuple[int, int] = (3, 5),
        reputation: str = "report",
        journal: str | Path | None = None,
        max_bytes: int | None = None,
        gram: bool = True,
        digests: bool = False,
        state: str | Path | None = None,
    ) -> None:
        super().__init__()
        # NVFlare writes a job from the attributes that are named like these arguments, and builds it again from them.
        self.rule = str(rule)
        self.f = f
        self.weighted = weighted
        self.max_weight = max_weight
        self.min_valid_replies = min_valid_replies
        self.allow_unprotected = allow_unprotected
        self.partial = partial
        self.max_skipped = max_skipped
        self.aside = aside if isinstance(aside, str) else list(aside)
        self.warn_after = warn_after
        self.reputation = reputation
        self.journal = None if journal is None else str(journal)
        self.max_bytes = max_bytes
        self.gram = gram
        self.digests = digests
        self.state = None if state is None else str(state)
        self.last_report: RoundReport | None = None
        """The verdict on every site in the last round."""
        self.server = self._open(rule, None)
        """Who is believed. Here it shows wrong arguments where the job is written; a run gets one with its files."""
        self.reset_stats()

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Follow the run: whom it asks, with which model, and who fails."""
        super().handle_event(event_type, fl_ctx)
        if event_type == EventType.START_RUN:
            self.server = self._open(self.rule, find_folder(fl_ctx))
            if not look_at_controllers(fl_ctx, self.server):
                self.server.begin()
        elif event_type == AppEventType.BEFORE_TRAIN_TASK:
            self._note_asked(name_site(fl_ctx), fl_ctx.get_prop(AppConstants.TRAIN_SHAREABLE))
        elif event_type == AppEventType.AFTER_CONTRIBUTION_ACCEPT:
            self._note_answered(name_site(fl_ctx), read_answer(fl_ctx))
        elif event_type == EventType.END_RUN:
            self.server.flush()

    def reset_stats(self) -> None:
        """Begin a round."""
        self._sent: FLModel | None = None
        self._model: Model | None = None
        self._asked: dict[str, None] = {}
        self._replies: dict[str, Any] = {}
        self._kinds: dict[str, ParamsType] = {}

    def accept(self, shareable: Shareable, fl_ctx: FLContext) -> bool:
        """Take one reply, as ScatterAndGather hands it over."""
        self.fl_ctx = fl_ctx
        site = name_site(fl_ctx)
        if self._is_late(shareable):
            self.server.logger.warning("robagg: what site %s sends is for an earlier round, and does not count", site)
            return False
        try:
            model = FLModelUtils.from_shareable(shareable)
        except Exception:
            return self._take(site, UnfitError(NO_MODEL))
        model.meta["client_name"] = site
        return self.accept_model(model)

    def accept_model(self, model: FLModel) -> bool:
        """Take one reply. Of what cannot be used only the reason is kept, so that it takes no memory until the end."""
        meta = model.meta
        site = meta["client_name"]  # which the controller writes there, over anything a site may say
        if not isinstance(model.params, Mapping):
            return self._take(site, UnfitError(NO_MODEL))
        reply = Reply(
            Arrays(model.params),
            size=meta.get(FLMetaKey.NUM_STEPS_CURRENT_ROUND),
            metrics=read_metrics(model.metrics),
        )
        if fault := self._find_fault(site, reply):
            return self._take(site, UnfitError(fault))
        self._kinds[site] = ParamsType(model.params_type)
        return self._take(site, reply)

    def aggregate_model(self) -> FLModel:
        """The next model; where the round is skipped no differences, which keep the model as it is."""
        sent = self._sent
        if sent is None and self._replies:
            raise RuntimeError(
                "RobustAggregator must see the model that is sent: the controller fires no BEFORE_TRAIN_TASK"
            )
        if sent is None:
            self.server.logger.error("robagg: nobody asked for the model, so that the round is skipped")
            return FLModel(params_type=ParamsType.DIFF, params={})
        kind = self._settle_kind()
        whole = kind == ParamsType.FULL
        model = Model(sent.params if whole else {n: blank(v) for n, v in sent.params.items()}, self.aside)
        decision = self.server.decide(sent.current_round or 0, self._replies, model, asked=self._asked)
        metrics = summarise_metrics([reply.metrics for reply in decision.accepted], self.server.rule)
        if decision.values is None:
            new, result = sent.params, FLModel(params_type=ParamsType.DIFF, params={}, metrics=metrics or None)
        else:
            value = model.rebuild(decision.values)
            new = value if whole else {name: sent.params[name] + change for name, change in value.items()}
            result = FLModel(params_type=kind, params=value, metrics=metrics or None)
        self.last_report = self.server.enter(decision, metrics=metrics, model=new)
        return result

    def _open(self, rule: Rule | str, folder: Path | None) -> RobustServer:
        """The server with its journal; without a folder there is none yet."""
        return RobustServer(
            rule,
            f=self.f,
            weighted=self.weighted,
            max_weight=self.max_weight,
            min_valid_replies=self.min_valid_replies,
            allow_unprotected=self.allow_unprotected,
            partial=self.partial,
            max_skipped=self.max_skipped,
            aside=self.aside,
            warn_after=self.warn_after,
            reputation=self.reputation,
            journal=None if folder is None or self.journal is None else folder / self.journal,
            max_bytes=self.max_bytes,
            gram=self.gram,
            digests=self.digests,
            state=None if folder is None or self.state is None else folder / self.state,
        )

    def _note_asked(self, site: str, task: Shareable) -> None:
        if self._sent is None:
            sent = FLModelUtils.from_shareable(task)
            with contextlib.suppress(TypeError, ValueError):  # which the end of the round says
                self._model = Model(sent.params, self.aside)
            self._sent = sent
        self._asked[site] = None

    def _note_answered(self, site: str, answer: Shareable) -> None:
        """What NVFlare itself did not hand over: an error, or what it could not read."""
        if site in self._replies or self._is_late(answer):
            return
        code = answer.get_return_code(ReturnCode.OK)
        self._take(site, UnfitError(NO_MODEL) if code == ReturnCode.OK else Failure(f"answers with {quote(code)}"))

    def _find_fault(self, site: str, reply: Reply) -> str:
        """Why a reply cannot be used, as far as it shows without the others."""
        if self._model is None:
            return ""
        names = find_part({site: reply}, self._model)
        model = self._model if names is None else self._model.part(names)
        (screened,) = screen({site: reply}, model, needs_size=self.weighted).given
        return screened.reason

    def _take(self, site: str, reply: Any) -> bool:
        """One site, one voice: the first counts."""
        self._replies.setdefault(site, reply)
        return self._replies[site] is reply

    def _is_late(self, answer: Shareable) -> bool:
        round_number = answer.get_cookie(AppConstants.CONTRIBUTION_ROUND)
        return self._sent is None or round_number not in (None, self._sent.current_round)

    def _settle_kind(self) -> ParamsType:
        """What most sites send, whole models or differences; replies of the other kind cannot be compared with them."""
        counts = Counter(self._kinds.values())
        kind = max(ParamsType, key=lambda kind: counts[kind])
        for site, other in self._kinds.items():
            if other != kind:
                self._replies[site] = UnfitError(
                    f"sends params of the type {other.value} where {kind.value} is expected"
                )
        return kind
