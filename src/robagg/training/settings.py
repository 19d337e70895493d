"""How a run is trained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from robagg._core.checks import is_number, is_whole
from robagg._core.registry import LATER, unknown
from robagg.models.batchnorm import UPDATES
from robagg.training.optimisers import Make, spell
from robagg.training.schedules import Schedule, describe_schedule, find_rate, find_round, is_schedule


@dataclass(frozen=True)
class Settings:
    """How a run is trained; the defaults are the paper's for MNIST.

    Args:
        rounds: how many rounds.
        batch: samples in each client's batch.
        momentum: of each honest client, from 0 to below 1: it sends `m = momentum m + (1 - momentum) gradient`.
        rate: the learning rate: `w = w - rate * value`.
        schedule: (point, factor) pairs: from that point on the rate is multiplied by the factor; a point is a share of
            the rounds below 1, or from 2 on a round. Or "cosine" or "linear", down to 0 at the end. Or a function of
            the round, from 0, that gives the factor.
        local_steps: steps a client makes before it sends the difference, divided by the rate.
        share: the share of the clients that is asked in each round.
        statistics: how running BatchNorm statistics move: "mean" over honest clients, or "median" over all. "batch": as
            "mean", but evaluation normalises by the statistics of each test batch, of at most 128 samples; the model of
            a result in evaluation mode uses the running ones.
        evaluate_every: rounds between evaluations; None: ten times in a run of up to 500 rounds, thirty times from 1500
            on, and every 50 between.
        full_trace: keep every round in the trace, not 150 at most.
        precision: of gradients on a GPU: "float32", "tf32", "bfloat16", or None for what torch is set to. A CPU uses
            float32.
        weight_decay: times the weights is added to each client's gradients.
        client_optimiser: one of `torch.optim` that each client has, with a state that it keeps from round to round; by
            its name, `adamw(weight_decay=0.01)`, or a function of the model's parameters that makes it. A client sends
            the way that it goes in a round, divided by the rate; `momentum` must be 0. None: plain descent.
        server_optimiser: one that the server steps by, with the aggregate for its gradient. None: `w - rate * value`.
        root: how many of a task's training samples the server keeps for itself, for rules that measure to a trusted
            row (FLTrust, MoNNA); `train` takes the samples themselves.

    Example:
        >>> settings = Settings(rounds=200, schedule=[(0.5, 0.1)])  # a tenth of the rate in the second half
        >>> [settings.rate_at(t) for t in (0, 99, 100)]
        [0.02, 0.02, 0.002]
    """

    rounds: int = 1500
    batch: int = 32
    momentum: float = 0.99
    rate: float = 0.02
    schedule: Schedule = ()
    local_steps: int = 1
    share: float = 1.0
    statistics: str = "mean"
    evaluate_every: int | None = None
    full_trace: bool = False
    precision: str | None = "tf32"
    weight_decay: float = field(default=0.0, metadata=LATER)
    client_optimiser: Make | None = field(default=None, metadata=LATER)
    server_optimiser: Make | None = field(default=None, metadata=LATER)
    root: int = field(default=0, metadata=LATER)

    def __post_init__(self) -> None:
        whole = "a whole number from 1 on"
        precisions, updates = ("float32", "tf32", "bfloat16"), (*UPDATES, "batch")
        for name, wanted, fine in (
            ("rounds", whole, _counts(self.rounds)),
            ("batch", whole, _counts(self.batch)),
            ("momentum", "a number from 0 to below 1", is_number(self.momentum) and 0 <= self.momentum < 1),
            ("rate", "a number above 0 that float32 holds", is_number(self.rate) and 0 < self.rate < 2.0**128),
            ("local_steps", whole, _counts(self.local_steps)),
            ("share", "a number above 0, 1 at most", is_number(self.share) and 0 < self.share <= 1),
            ("evaluate_every", f"{whole}, or None", self.evaluate_every is None or _counts(self.evaluate_every)),
            ("full_trace", "True or False", isinstance(self.full_trace, bool)),
            ("precision", f"{', '.join(precisions)} or None", self.precision in (None, *precisions)),
            ("statistics", f"one of {', '.join(updates)}", self.statistics in updates),
            ("weight_decay", "a number from 0 on", is_number(self.weight_decay) and 0 <= self.weight_decay < 2.0**128),
            ("root", "a whole number from 0 on", is_whole(self.root) and self.root >= 0),
        ):
            if not fine:
                raise ValueError(f"{name} must be {wanted}, got {getattr(self, name)!r}")
        if not is_schedule(self.schedule, self.rounds):
            raise ValueError(f"schedule must be {describe_schedule(self.rounds)}, got {self.schedule!r}")
        if not isinstance(self.schedule, str) and not callable(self.schedule):
            object.__setattr__(self, "schedule", tuple((float(at), float(factor)) for at, factor in self.schedule))
        for at, _ in self.schedule if isinstance(self.schedule, tuple) else ():
            if not abs(rate := self.rate_at(math.ceil(find_round(at, self.rounds)))) < 2.0**128:
                raise ValueError(f"the schedule must leave a rate that float32 holds, got {rate} from {at} on")
        self.rate_at(0)  # a function that gives no number is refused before the first round
        for name in ("client_optimiser", "server_optimiser"):
            make = getattr(self, name)
            if isinstance(make, str):  # one text for one optimiser, so that equal runs have equal keys
                object.__setattr__(self, name, spell(make))
            elif make is not None and not callable(make):
                raise ValueError(f"{name} must be a name in torch.optim or a function of parameters, got {make!r}")
        if self.client_optimiser is not None and self.momentum:
            raise ValueError(
                f"momentum must be 0 where clients have an optimiser, which has its own, got {self.momentum}"
            )

    def change(self, given: Mapping[str, Any]) -> Settings:
        """These settings with others by name; a name that is none gets a sentence."""
        names = [known.name for known in fields(self)]
        for name in given:
            if name not in names:
                raise ValueError(unknown("setting", name, names, names))
        return replace(self, **given)

    def count_asked(self, n: int) -> int:
        """How many of n clients are asked in a round."""
        return max(1, round(self.share * n))

    def rate_at(self, t: int) -> float:
        """The learning rate in round t."""
        return find_rate(self.schedule, self.rate, t, self.rounds)

    def evaluates_at(self, t: int) -> bool:
        """Whether the model is evaluated after t rounds."""
        every = self.evaluate_every or max(min(50, -(-self.rounds // 10)), self.rounds // 30)
        return t % every == 0 or t == self.rounds


def _counts(value: object) -> bool:
    return is_whole(value) and value >= 1
