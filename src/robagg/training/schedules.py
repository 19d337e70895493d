"""How the learning rate moves over the rounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from robagg._core.checks import is_number

Schedule: TypeAlias = str | tuple[tuple[float, float], ...] | Callable[[int], float]
"""A name of `CURVES`; (point, factor) pairs; or a function of the round, from 0, that gives the factor of the rate."""
CURVES: dict[str, Callable[[float], float]] = {
    "cosine": lambda done: (1 + math.cos(math.pi * done)) / 2,
    "linear": lambda done: 1 - done,
}
"""The factor of the rate over the share of the rounds that are done."""


def find_rate(schedule: Schedule, rate: float, t: int, rounds: int) -> float:
    """The learning rate in round t of so many.

    >>> [find_rate(((0.5, 0.1), (8, 0.0)), 1.0, t, rounds=10) for t in (4, 5, 8)]
    [1.0, 0.1, 0.0]
    """
    if isinstance(schedule, str):
        return rate * CURVES[schedule](t / rounds)
    if callable(schedule):
        factor = schedule(t)
        if not is_number(factor) or not abs(rate * factor) < 2.0**128:
            raise ValueError(f"the schedule must give a factor of the rate as a number, got {factor!r} for round {t}")
        return rate * float(factor)
    for at, factor in schedule:
        rate *= factor if t >= find_round(at, rounds) else 1.0
    return rate


def find_round(at: float, rounds: int) -> float:
    """The round from which a point on holds: above 1 it is a round itself, below 1 a share of them."""
    return at if at > 1 else at * rounds


def describe_schedule(rounds: int) -> str:
    """What a schedule must be."""
    return (
        f"(point, factor) pairs of numbers, a point being a share of the rounds from 0 to below 1 or one of the rounds "
        f"2 to {rounds - 1} (round 1 is the share 1/{rounds}), "
        f"or one of {', '.join(CURVES)}, or a function of the round"
    )


def is_schedule(value: Any, rounds: int) -> bool:
    """Whether it is one that does something in so many rounds."""
    if isinstance(value, str):
        return value in CURVES
    if callable(value):
        return True
    return isinstance(value, list | tuple) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 and all(map(_is_finite, pair)) and _is_point(pair[0], rounds)
        for pair in value
    )


def _is_point(at: float, rounds: int) -> bool:
    """Neither a share nor a round is 1: it once was the share of all rounds, and stored runs with it have that key."""
    return 0 <= at < 1 or (at == int(at) and 1 < at < rounds)


def _is_finite(value: object) -> bool:
    return is_number(value) and abs(value) < 2.0**1000  # times a number of rounds it stays one
