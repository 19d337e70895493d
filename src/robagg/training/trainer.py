"""The loop over rounds: evaluations, the trace, divergence, and a captured round where there is one."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from robagg._core.tolerance import QuorumError
from robagg._core.verdict import Verdict
from robagg.kernels.devices import on
from robagg.models import batchnorm
from robagg.training.federation import Federation
from robagg.training.graph import capture
from robagg.training.losses import Loss
from robagg.training.metrics import Metric, Value, at_rest, check_goal, check_metrics, measure, measure_own
from robagg.training.snapshot import restore, save
from robagg.training.trace import CURVES, Trace, stride

Progress = Callable[[int, int, float | None], None]
"""Called after each round: rounds done, rounds in all, the last accuracy."""
Callback = Callable[[int, nn.Module, Verdict], object]
"""Called after each round: its number from 0, the model in evaluation mode, and the verdict on all clients."""
Checkpoint = dict[str, Any]


@dataclass(frozen=True)
class Result:
    """What a run gave.

    Args:
        accuracy: percent of the test set, after the last round; None without a test set, or where the weights broke.
        curve: (rounds done, accuracy in percent) at each evaluation.
        trace: loss, tau, distances and weights of up to 150 rounds.
        model: the trained model, in evaluation mode.
        diverged: the round in which the weights ceased to be finite, or all clients broke; None: never.
        rounds: rounds done.
        seconds: how long they took.
        device: where they were computed.
        notes: what else happened, in sentences.
        losses: (rounds done, loss on the test set) at each evaluation.
        metrics: what was measured after the last round, by name: on the test set `loss` and `class_accuracy`, of each
            class; `worst_client`, the lowest accuracy over the honest clients, each on its own data; `attack_success`,
            where the attack wants certain labels; and what your own functions gave. Empty where the weights broke.

    Example:
        >>> import robagg as ra
        >>> x = torch.randn(90, 2)
        >>> clients = [(x[k::9], (x[k::9, 0] > 0).long()) for k in range(9)]
        >>> result = ra.train(nn.Linear(2, 2), clients, "tq", "ipm", f=2, rounds=20, test=(x, (x[:, 0] > 0).long()))
        >>> result.accuracy == result.curve[-1][1], result.rounds, result.device
        (True, 20, 'cpu')
    """

    accuracy: float | None
    curve: list[tuple[int, float]]
    trace: Trace
    model: nn.Module
    diverged: int | None
    rounds: int
    seconds: float
    device: str
    notes: list[str] = field(default_factory=list)
    losses: list[tuple[int, float]] = field(default_factory=list)
    metrics: dict[str, Value] = field(default_factory=dict)


class Loop:
    """A federation's run from its first round, or from a checkpoint, to its result."""

    def __init__(
        self,
        federation: Federation,
        test: tuple[Tensor, Tensor] | None = None,
        *,
        progress: Progress | None = None,
        checkpoint: Callable[[Checkpoint], None] | None = None,
        metrics: Mapping[str, Metric] | None = None,
        callback: Callback | None = None,
    ) -> None:
        if test is not None and (len(test[1]) == 0 or len(test[0]) != len(test[1])):
            got = f"{len(test[0])} samples and {len(test[1])} labels"
            raise ValueError(f"the test set must hold a sample at least, and a label for each, got {got}")
        self.federation, self.progress, self.checkpoint = federation, progress, checkpoint
        self.metrics, self.callback = {} if metrics is None else metrics, callback
        check_metrics(self.metrics)
        for name, given in (("progress", progress), ("callback", callback)):
            if given is not None and not callable(given):
                raise TypeError(f"{name} must be a function, called after each round, got {given!r}")
        self.test = None if test is None else (test[0].to(federation.device), test[1].to(federation.device))
        self.trace = Trace(federation.n, federation.f)
        self.curve: list[tuple[int, float]] = []
        self.losses: list[tuple[int, float]] = []
        self.notes: list[str] = [*federation.notes]
        self.diverged: int | None = None
        self.graphs: dict[bool, torch.cuda.CUDAGraph] | None = None

    def run(self, *, resume: Checkpoint | None = None) -> Result:
        """All rounds; `resume` takes up what `checkpoint` was last given, at an evaluation."""
        device = self.federation.device
        devices = [device] if device.type == "cuda" else []
        # A caller's no_grad or inference_mode is not for training.
        with torch.inference_mode(False), torch.enable_grad(), on(device), torch.random.fork_rng(devices):
            # Dropout draws from the global generator, which is given back as it was.
            torch.manual_seed(self.federation.dropout_seed)
            return self._run(resume)

    def _run(self, resume: Checkpoint | None) -> Result:
        federation, settings = self.federation, self.federation.settings
        begin, start = time.perf_counter(), 0
        # What cannot be measured raises before the first round.
        loss = None if self.test is None else self._check(self.test)
        measure_own(federation, self.test, self.metrics)
        if resume is not None:
            restore(federation, resume["federation"])
            start, self.curve, self.trace = resume["round"], list(resume["curve"]), copy.deepcopy(resume["trace"])
            self.losses = list(resume["losses"])
        if federation.captures and self.callback is not None:
            self.notes.append("a round is not one CUDA graph: the callback looks at each")
        elif federation.captures:
            self.graphs = capture(federation)
        t, found = start, None
        while t < settings.rounds and self.diverged is None:
            stop = next(k for k in range(t + 1, settings.rounds + 1) if settings.evaluates_at(k))
            t = self._advance(t, stop)
            finite = federation.finite()
            if self.diverged is None and not finite:
                self._stop(t - 1, "the weights are not finite")
            found = federation.score(self.test, loss) if self.test is not None and finite else None
            if found is not None:
                self.curve += [] if found.accuracy is None else [(t, found.accuracy)]
                self.losses += [] if loss is None else [(t, found.loss)]
            self._report(t)
            if self.checkpoint is not None and self.diverged is None:
                self.checkpoint(
                    {
                        "round": t,
                        "federation": save(federation),
                        "curve": list(self.curve),
                        "losses": list(self.losses),
                        "trace": copy.deepcopy(self.trace),
                    }
                )
        finite = federation.finite()
        if found is None and self.test is not None and finite:  # taken up after its last round
            found = federation.score(self.test, loss)
        metrics = measure(federation, self.test, found, self.metrics, self.notes) if finite else {}
        batchnorm.apply(federation.model, federation.running)
        return Result(
            accuracy=None if found is None else found.accuracy,
            curve=self.curve,
            trace=self.trace,
            model=federation.model.eval(),
            diverged=self.diverged,
            rounds=t,
            seconds=time.perf_counter() - begin,
            device=str(federation.device),
            notes=self.notes,
            losses=self.losses,
            metrics=metrics,
        )

    def _check(self, test: tuple[Tensor, Tensor]) -> Loss | None:
        """Refuse a test set of which nothing can be counted; the loss that can be measured on it."""
        federation, few = self.federation, (test[0][:2], test[1][:2])
        measured = federation.score(few).right is None
        if not measured:
            check_goal(federation, test)
        least, largest = float(test[1].min()), float(test[1].max())
        try:
            if not measured and (least < 0 or largest >= federation.classes):
                raise ValueError(f"labels must be from 0 to {federation.classes - 1}, got {least:g} to {largest:g}")
            federation.score(few, federation.loss_of)
            return federation.loss_of
        except Exception as error:  # in evaluation a model may give what its loss does not take
            if measured:
                raise ValueError(f"the loss of the test set cannot be computed: {error}") from error
            note = f"the loss of the test set is not measured: {error}"
            self.notes += [] if note in self.notes else [note]
            return None

    def _advance(self, t: int, stop: int) -> int:
        """Rounds t..stop-1; a captured stretch in which the alarm went off is done again on the path that asks."""
        if self.graphs is None:
            return self._walk(t, stop)
        saved, points = save(self.federation), len(self.trace.rounds)
        self.federation.alarm.zero_()
        self._walk(t, stop)
        if not bool(self.federation.alarm) and self.federation.finite():
            return stop
        self.graphs = None
        self.notes.append(f"rows that are not finite or out of range came after round {t}: done again row by row")
        restore(self.federation, saved)
        self.trace = _cut(self.trace, points)
        return self._walk(t, stop)

    def _walk(self, t: int, stop: int) -> int:
        federation, settings = self.federation, self.federation.settings
        every = stride(settings.rounds, settings.full_trace)
        for k in range(t, stop):
            federation.set_rate(settings.rate_at(k))
            verdict = k % every == 0 or k == settings.rounds - 1
            if self.graphs is not None:
                self.graphs[verdict].replay()
            else:
                try:
                    federation.round(k, verdict=verdict or self.callback is not None)
                except QuorumError as error:
                    self._stop(k, str(error))
                    return k
                if federation.device.type == "cpu" and not federation.noted.loss.isfinite() and not federation.finite():
                    self._stop(k, "the weights are not finite")
                    return k
            if verdict:
                noted = federation.noted
                tau = float(noted.tau) if noted.has_tau else None
                seen = (noted.weights.cpu(), noted.dropped.cpu(), noted.reach.cpu())
                self.trace.add(k, float(noted.loss), tau, *seen)
            if self.callback is not None:
                with at_rest(federation) as model:
                    self.callback(k, model, federation.noted.explain(federation.rule))
            if k + 1 < stop:
                self._report(k + 1)
        return stop

    def _stop(self, k: int, why: str) -> None:
        self.diverged = k
        self.notes.append(f"stopped in round {k}: {why}")

    def _report(self, t: int) -> None:
        if self.progress is not None:
            self.progress(t, self.federation.settings.rounds, self.curve[-1][1] if self.curve else None)


def _cut(trace: Trace, points: int) -> Trace:
    return replace(trace, **{name: getattr(trace, name)[:points] for name in CURVES})
