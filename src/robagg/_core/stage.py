"""What can stand in a chain: pre-aggregators, and in a protocol what aggregation asks of the rule at its end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from robagg._core.outcome import Outcome
from robagg._core.passes import Passes
from robagg._core.registry import Named
from robagg._core.sketch import Sketch
from robagg._core.tolerance import F, read_f, resolve_f, tolerance_left
from robagg._core.votes import Votes

DECISIONS = frozenset({"solve", "weights", "pull", "kept", "matrix"})
"""The methods that decide what a row counts."""


class Stage(Named, ABC):
    """A rule or a pre-aggregator."""

    anchors: ClassVar[tuple[str, ...]] = ()
    """Points it starts from or measures to: "origin", "last" for the last aggregate, "root" for a row that is trusted
    (which is not there in every call)."""
    takes_weights: ClassVar[bool] = False
    """Whether it counts row i as `sketch.votes[i]` rows. A subclass that decides otherwise must say so itself."""
    tolerates: ClassVar[bool] = True
    """Whether its f is what it protects from. Mean protects from nobody: its f only counts broken rows."""
    captures: ClassVar[bool] = True
    """Whether it can be part of a CUDA graph: one that asks the device for a number cannot."""
    shares_rows: ClassVar[bool] = False
    """Whether one row goes into several behind it, so that these may coincide."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not DECISIONS.isdisjoint(cls.__dict__) and "takes_weights" not in cls.__dict__:
            cls.takes_weights = False

    def __post_init__(self) -> None:
        given = getattr(self, "f", None)
        if (f := read_f(given, type(self).__name__)) is not given:
            object.__setattr__(self, "f", f)

    def resolve_f(self, n: int) -> int:
        """f for n rows, checked against n."""
        return resolve_f(getattr(self, "f", 0), n, type(self).__name__)

    def tolerance_left(self, n: int, broken: int) -> int | None:
        """f for the rows left when some of n are broken; None where there is no quorum."""
        return tolerance_left(self.resolve_f(n), n, broken)

    def revise(self, front: Sequence[Stage]) -> int:
        """How often what it gives behind these stages has changed since results were first stored: part of their keys.

        A change that leaves its other results as they were is counted where it shows alone.
        """
        return 0

    @property
    def f_asked(self) -> F:
        """The f that it is to tolerate, as it was given: 0 for what has none."""
        f: F = getattr(self, "f", 0) if self.tolerates else 0
        return f


@dataclass(frozen=True)
class Mixing(Stage):
    """What aggregation asks of a pre-aggregator: a matrix whose rows say which weighted sums of the rows go on."""

    needs_distances: ClassVar[bool] = True
    draws: ClassVar[bool] = True
    """Whether its matrix may be drawn: then all ranks that share the columns must draw alike."""

    @property
    def joins(self) -> int:
        """How many rows one behind it may stand for; one: row i is row i's."""
        return 1

    @abstractmethod
    def matrix(self, sketch: Sketch, *, generator: torch.Generator | None = None) -> Tensor:
        """(m, n+a) float64, on the rows and anchors of the sketch; each row sums to one."""

    def tolerance_behind(self, n: int, f: int) -> int:
        """How many of the n rows behind it may be Byzantine, if f of those before it may."""
        return f

    def votes_behind(self, matrix: Tensor, votes: Tensor) -> Tensor:
        """The votes (m,) int64 of the rows behind its matrix (m, n+a), from those before it (n,)."""
        return votes

    def count_behind(self, n: int) -> int:
        """How many rows it makes of n."""
        return n


class Solver(Protocol):
    """What aggregation asks of a rule, which is defined above it."""

    @property
    def mixers(self) -> tuple[Mixing, ...]:
        """The pre-aggregators in front of it."""

    @property
    def core(self) -> Solver:
        """The rule at the end of the chain."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All of the chain, in order."""

    @property
    def least_n(self) -> int:
        """The fewest rows it can work on."""

    @property
    def tolerates(self) -> bool:
        """Whether its f is what it protects from."""

    @property
    def f_asked(self) -> F:
        """The f that it is to tolerate, as it was given."""

    def solve(self, passes: Passes, f: int, shares: Tensor | None) -> Outcome:
        """Aggregate the rows behind `passes`, of which f may be Byzantine."""


def find_in_force(rule: Solver, n: int, broken: int = 0, votes: Votes | None = None) -> list[int]:
    """The f of each stage for the rows that reach it, when some of the n rows that were given are broken."""
    left, joined = n - broken, 1
    in_force = [find_left(stage, n, broken, votes) or 0 for stage in rule.stages]
    for k, mixer in enumerate(rule.mixers, start=1):
        left, joined = mixer.count_behind(left), joined * mixer.joins
        if votes is None:
            in_force[k:] = [mixer.tolerance_behind(left, f) for f in in_force[k:]]
        elif mixer.joins > 1:
            in_force[k:] = [find_left(stage, n, broken, votes, joined) or 0 for stage in rule.stages[k:]]
    return in_force


def find_left(stage: Stage, n: int, broken: int, votes: Votes | None, joined: int = 1) -> int | None:
    """The f of a stage for the rows left, each of which stands for up to so many clients; None: no quorum."""
    if votes is None:
        return stage.tolerance_left(n, broken)
    return votes.tolerance_left(getattr(stage, "f", 0), broken, joined)


def describe_unprotected(rule: Solver, n: int, broken: int = 0, votes: Votes | None = None) -> str:
    """Why a stage that is to tolerate somebody tolerates nobody here; empty where all that are asked to do."""
    for stage, f in zip(rule.stages, find_in_force(rule, n, broken, votes), strict=True):
        if f == 0 and stage.f_asked != 0:
            rows = f"{n - broken} sound rows of {n}" if broken else f"n={n} rows"
            rows += "" if votes is None else " and these client weights"
            chain = f" in {rule}" if rule.mixers else ""
            return (
                f"{stage.name()}{chain} tolerates nobody with {rows}: f in force is 0 where f={stage.f_asked} was "
                "given, so one Byzantine row can move the value anywhere"
            )
    return ""
