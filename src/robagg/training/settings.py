"""How a run is trained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from robagg._core.checks import is_number, is_whole
from robagg._core.registry import unknown
from robagg.models.batchnorm import UPDATES


@dataclass(frozen=True)
class Settings:
    """How a run is trained; the defaults are the paper's for MNIST.

    Args:
        rounds: how many rounds.
        batch: samples in each client's batch.
        momentum: of each honest client, from 0 to below 1: it sends `m = momentum m + (1 - momentum) gradient`.
        rate: the learning rate: `w = w - rate * value`.
        schedule: (share of the rounds, factor): from that point on the rate is multiplied by the factor.
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

    Example:
        >>> settings = Settings(rounds=200, schedule=[(0.5, 0.1)])  # a tenth of the rate in the second half
        >>> [settings.rate_at(t) for t in (0, 99, 100)]
        [0.02, 0.02, 0.002]
    """

    rounds: int = 1500
    batch: int = 32
    momentum: float = 0.99
    rate: float = 0.02
    schedule: tuple[tuple[float, float], ...] = ()
    local_steps: int = 1
    share: float = 1.0
    statistics: str = "mean"
    evaluate_every: int | None = None
    full_trace: bool = False
    precision: str | None = "tf32"

    def __post_init__(self) -> None:
        whole = "a whole number from 1 on"
        precisions, updates = ("float32", "tf32", "bfloat16"), (*UPDATES, "batch")
        for name, wanted, fine in (
            ("rounds", whole, _counts(self.rounds)),
            ("batch", whole, _counts(self.batch)),
            ("momentum", "a number from 0 to below 1", is_number(self.momentum) and 0 <= self.momentum < 1),
            ("rate", "a number above 0 that float32 holds", is_number(self.rate) and 0 < self.rate < 2.0**128),
            ("schedule", "(share of the rounds from 0 to 1, factor) pairs of numbers", _is_schedule(self.schedule)),
            ("local_steps", whole, _counts(self.local_steps)),
            ("share", "a number above 0, 1 at most", is_number(self.share) and 0 < self.share <= 1),
            ("evaluate_every", f"{whole}, or None", self.evaluate_every is None or _counts(self.evaluate_every)),
            ("full_trace", "True or False", isinstance(self.full_trace, bool)),
            ("precision", f"{', '.join(precisions)} or None", self.precision in (None, *precisions)),
            ("statistics", f"one of {', '.join(updates)}", self.statistics in updates),
        ):
            if not fine:
                raise ValueError(f"{name} must be {wanted}, got {getattr(self, name)!r}")
        for at in (at for at, _ in self.schedule if at < 1):
            if not abs(rate := self.rate_at(math.ceil(at * self.rounds))) < 2.0**128:
                raise ValueError(f"the schedule must leave a rate that float32 holds, got {rate} from {at} on")

    def change(self, given: Mapping[str, Any]) -> Settings:
        """These settings with others by name; a name that is none gets a sentence."""
        names = [field.name for field in fields(self)]
        for name in given:
            if name not in names:
                raise ValueError(unknown("setting", name, names, names))
        return replace(self, **given)

    def count_asked(self, n: int) -> int:
        """How many of n clients are asked in a round."""
        return max(1, round(self.share * n))

    def rate_at(self, t: int) -> float:
        """The learning rate in round t."""
        rate = self.rate
        for at, factor in self.schedule:
            rate *= factor if t >= at * self.rounds else 1.0
        return rate

    def evaluates_at(self, t: int) -> bool:
        """Whether the model is evaluated after t rounds."""
        every = self.evaluate_every or max(min(50, -(-self.rounds // 10)), self.rounds // 30)
        return t % every == 0 or t == self.rounds


def _counts(value: object) -> bool:
    return is_whole(value) and value >= 1


def _is_finite(value: object) -> bool:
    return is_number(value) and abs(value) < 2.0**1000  # times a number of rounds it stays one


def _is_schedule(value: object) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 and all(map(_is_finite, pair)) and 0 <= pair[0] <= 1
        for pair in value
    )
