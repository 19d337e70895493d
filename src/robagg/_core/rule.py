"""Rules and pre-aggregators: what they promise, how they are written, chained, and read from text.

A rule is a frozen dataclass and a pure function. It writes one method (`GramRule.weights`, `SortedRule.kept`, or
`solve`); what all rules promise alike is kept in aggregate.py.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from robagg._core.aggregate import Request, aggregate
from robagg._core.contract import Attribution, read_weights
from robagg._core.history import add_rows
from robagg._core.mixer import Chain, Mixer
from robagg._core.outcome import Outcome, Weights
from robagg._core.passes import Passes
from robagg._core.registry import Registry
from robagg._core.sketch import Sketch
from robagg._core.stack import Stack, read
from robagg._core.stage import Stage
from robagg._core.tolerance import F
from robagg._core.verdict import Verdict, judge, rebuild


class Rule(Stage):
    """Turns n rows into one that f Byzantine ones among them cannot drag away."""

    remembers: ClassVar[bool] = False
    """Whether `step` hands on the value as state."""
    accumulates: ClassVar[bool] = False
    """Whether `step` hands on the sum of each row over the rounds as state: an (n, d) tensor."""
    f: F

    @property
    def least_n(self) -> int:
        """The fewest rows it can work on."""
        return 1

    @property
    def mixers(self) -> tuple[Mixer, ...]:
        """The pre-aggregators in front of it."""
        return ()

    @property
    def core(self) -> Rule:
        """The rule at the end of the chain: itself, where there is no chain."""
        return self

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (*self.mixers, self.core)

    def __call__(
        self,
        x: Any,
        *,
        weights: Any = None,
        max_weight: float | None = None,
        distances: str = "auto",
        root: Any = None,
        generator: torch.Generator | None = None,
    ) -> Any:
        """The aggregate of the rows x, in their kind.

        Args:
            x: an (n, d) tensor or array, a list of vectors, or a list of state dicts or other trees of arrays.
            weights: what each client claims to count, such as its number of examples; None: all alike.
            max_weight: the largest share of all that a claim can give a client; None: as far as f allows it.
            distances: "exact"; "projected", which takes less time with many rows and is a little off; or "auto", which
                projects from 512 rows on. The value is a sum of the rows as they are in any case.
            root: a row that the server trusts, in the kind of the rows, for rules that measure to it (MoNNA, FLTrust).
            generator: what is random takes its numbers here.
        """
        request = Request(weights, None, generator, False, max_weight, distances, root)
        return rebuild(*aggregate(self, read(x), request))

    def explain(
        self,
        x: Any,
        *,
        weights: Any = None,
        max_weight: float | None = None,
        distances: str = "auto",
        root: Any = None,
        generator: torch.Generator | None = None,
    ) -> Verdict:
        """The aggregate with each row's share in it, and the reason for every row that was left out or limited."""
        request = Request(weights, None, generator, True, max_weight, distances, root)
        return judge(self, *aggregate(self, read(x), request))

    def step(
        self,
        x: Any,
        state: Any = None,
        *,
        weights: Any = None,
        max_weight: float | None = None,
        distances: str = "auto",
        root: Any = None,
        generator: torch.Generator | None = None,
    ) -> tuple[Verdict, Any]:
        """The verdict and the next state: one that remembers takes its last value or the rows' sums, others keep it."""
        request = Request(weights, state, generator, True, max_weight, distances, root)
        stack, outcome = aggregate(self, read(x), request)
        verdict = judge(self, stack, outcome)
        return verdict, self.core.remember(stack, state, verdict.value)

    def remember(self, stack: Stack, state: Any, value: Any) -> Any:
        """The next state, after sound rows gave a value."""
        if self.accumulates:
            return add_rows(stack, state)
        # A copy: who scales the value in place must not move where the next round starts.
        return copy.deepcopy(value) if self.remembers else state

    def solve(self, passes: Passes, f: int, shares: Tensor | None) -> Outcome:
        """Aggregate the rows behind `passes`, of which f (of votes, where `shares` (n,) are given) may be Byzantine."""
        raise TypeError(f"{type(self).__name__} must define solve or, as a GramRule, weights")

    def __rrshift__(self, other: object) -> Rule:
        if isinstance(other, Mixer | Chain):
            before = other.mixers if isinstance(other, Chain) else (other,)
            return Pipe((*before, *self.mixers), self.core)
        return NotImplemented

    def __rshift__(self, other: object) -> Rule:
        raise TypeError(f"what stands before >> must be a pre-aggregator, got {self} >> {other}")


@dataclass(frozen=True)
class Pipe(Rule):
    """Pre-aggregators (`front`, the first one first) and the rule behind them (`tail`): a rule again."""

    front: tuple[Mixer, ...]
    tail: Rule

    def __post_init__(self) -> None:
        """Its parts have checked themselves."""

    @property
    def mixers(self) -> tuple[Mixer, ...]:
        return self.front

    @property
    def f(self) -> F:  # type: ignore[override]
        return self.tail.f

    @property
    def core(self) -> Rule:
        return self.tail

    @property
    def least_n(self) -> int:
        """The fewest rows of which enough are left behind the pre-aggregators."""
        n = self.tail.least_n
        while True:
            behind = n
            for mixer in self.mixers:
                behind = mixer.count_behind(behind)
            if behind >= self.tail.least_n:
                return n
            n += 1

    def __str__(self) -> str:
        return " >> ".join(str(stage) for stage in (*self.mixers, self.tail))


class GramRule(Rule):
    """A rule that decides by distances: one pass for the sketch, n x n work for the weights, one pass to combine."""

    needs_median: ClassVar[bool] = False
    """Whether the sketch must be about the median of the rows it gets (and the weights' rest is the median's)."""
    maps_well: ClassVar[bool] = True
    """Whether many sketches mapped over at once take less time than one after the other."""
    scaled: ClassVar[bool] = False
    """Whether it also gets distances in which a coordinate's unit is its own spread, which takes a pass more."""
    floor: bool = False
    """Whether the spread it gets behind a pre-aggregator that lets a row into several is kept above what mixing leaves
    of the rows' distances: such rows may coincide, and their own spread vanish."""

    def revise(self, front: Sequence[Stage]) -> int:
        return int(self.floor and any(stage.shares_rows for stage in front))

    @abstractmethod
    def weights(self, sketch: Sketch) -> Weights:
        """Coefficients from the sketch: n x n work that never sees d."""

    def solve(self, passes: Passes, f: int, shares: Tensor | None) -> Outcome:
        if self.needs_median:
            medians, sketch = passes.sketch(f, floor=self.floor)
        else:
            medians, sketch = None, passes.distances(f, scaled=self.scaled)
        with Attribution(self, "weights"):
            w = self.weights(sketch)
        coefficients = read_weights(self, w, sketch, passes, rest=self.needs_median)
        values = passes.combine(coefficients, medians)
        if not passes.verdict:
            return Outcome(values, None, passes.alarm)
        w = w if passes.matrix is None else w.of_sent(passes.matrix[: passes.n, : passes.sent])
        return Outcome(
            values=values,
            weights=passes.through(coefficients)[: passes.sent],
            alarm=passes.alarm,
            median_weight=None if medians is None else 1 - coefficients.sum(),
            tau=w.tau,
            outside=w.outside,
            reach=w.reach,
            treatment=w.treatment,
            chosen=w.outside is None and w.left is None,
            left=w.left,
            scale=w.scale,
        )


stages: Registry[Stage] = Registry("rule or pre-aggregator", Stage, "robagg.rules", "robagg.mixers")


def parse(text: str | Rule, *, f: F = None) -> Rule:
    """Read a rule or a chain from text; `f` goes to every part that takes one and does not name it.

    >>> parse("nnm >> tq", f=6)
    Pipe(front=(NNM(f=6),), tail=TQ(f=6, iterations=10, floor=True))
    >>> str(parse("bucketing(s=2) >> tq(iterations=20)", f=6))
    'bucketing >> tq(f=6, iterations=20)'
    """
    if isinstance(text, Rule):
        return text
    if not isinstance(text, str):
        raise TypeError(f"a rule must be given as text, such as 'nnm >> tq', got {text!r}")
    *mixers, last = [stages.parse(part, f=f) for part in text.split(">>")]
    wrong = next((m for m in mixers if not isinstance(m, Mixer)), None)
    if wrong is not None:
        raise ValueError(f"what stands before >> must be a pre-aggregator, got the rule {wrong} in {text!r}")
    if not isinstance(last, Rule):
        raise ValueError(f"a chain must end in a rule, got the pre-aggregator {last} in {text!r}")
    return Pipe(tuple(m for m in mixers if isinstance(m, Mixer)), last) if mixers else last
