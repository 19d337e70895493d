"""Rules and pre-aggregators: what they promise, how they are written, chained, and read from text.

A rule is a frozen dataclass and a pure function. It writes one method (`GramRule.weights`, or `solve`); everything that
all rules promise lives here: f against n, broken rows, huge numbers, the verdict.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from robagg.liars import F, QuorumError, check_f, count_liars, remaining_liars
from robagg.passes import Passes
from robagg.registry import Named, Registry
from robagg.sketch import Sketch
from robagg.stack import Stack, read
from robagg.verdict import Outcome, Verdict, judge, rebuild


@dataclass(frozen=True)
class Weights:
    """What a distance rule decides: a coefficient for each row and anchor, and how it came to it."""

    coefficients: Tensor
    """(n+a,); for rules that need the median the rest up to one is the median's."""
    tau: Tensor | None = None
    outside: Tensor | None = None
    """(n,) rows outside tau in the last step."""
    reach: Tensor | None = None
    """(n,) distances that the last step compared with tau."""
    verb: str = ""
    """What becomes of a row outside tau; empty: it has no part in the value."""


class Stage(Named, ABC):
    """What can stand in a chain: a rule or a pre-aggregator."""

    anchors: ClassVar[tuple[str, ...]] = ()
    """Points it starts from or measures to: "origin", or "last" for the last aggregate."""

    def __post_init__(self) -> None:
        check_f(getattr(self, "f", None), type(self).__name__)

    def count_liars(self, n: int) -> int:
        """f for n rows, checked against n."""
        return count_liars(getattr(self, "f", 0), n, type(self).__name__)

    def liars_left(self, n: int, broken: int) -> int | None:
        """f for the rows left when some of n are broken; None where there is no quorum."""
        return remaining_liars(self.count_liars(n), n, broken)


class Rule(Stage):
    """Turns n rows into one that f of them cannot move."""

    remembers: ClassVar[bool] = False
    """Whether `step` hands on the value as state."""
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

    def __call__(self, x: Any, *, weights: Any = None, generator: torch.Generator | None = None) -> Any:
        """The aggregate of the rows x, in their kind.

        Args:
            x: an (n, d) tensor or array, a list of vectors, or a list of state dicts or other nests of arrays.
            weights: n client sizes, for Mean.
            generator: what is random takes its numbers here.
        """
        stack, outcome = self.run(read(x), weights=weights, generator=generator)
        return rebuild(stack, outcome)

    def explain(self, x: Any, *, weights: Any = None, generator: torch.Generator | None = None) -> Verdict:
        """The aggregate with the reason for every row that was not believed."""
        stack, outcome = self.run(read(x), weights=weights, generator=generator, verdict=True)
        return judge(str(self), stack, outcome)

    def step(self, x: Any, state: Any = None, *, generator: torch.Generator | None = None) -> tuple[Verdict, Any]:
        """The verdict and the next state: one that remembers takes its last value as state, others hand it through."""
        stack, outcome = self.run(read(x), state=state, generator=generator, verdict=True)
        verdict = judge(str(self), stack, outcome)
        return verdict, verdict.value if self.core.remembers else state

    def run(
        self,
        stack: Stack,
        *,
        weights: Any = None,
        state: Any = None,
        generator: torch.Generator | None = None,
        verdict: bool = False,
    ) -> tuple[Stack, Outcome]:
        """Aggregate by the contract: drop the broken, keep the huge; the rows used and the outcome on them.

        With `verdict`, each row's weight is told even where that takes another pass.
        """
        for stage in self.stages:
            stage.count_liars(stack.n)
        shares = None if weights is None else self._read_weights(weights, stack.n)
        if shares is not None:
            stack = stack.without({i: f"weight {w} is no size" for i, w in enumerate(shares) if not 0 <= w < math.inf})
            if 0 in shares:  # a row without weight is never read, so no pass would find it broken
                stack = stack.without(stack.broken_rows())
        last = None if state is None else stack.flatten(state)
        wide = False
        # A second attempt draws what the first drew, so that a broken row changes nothing but its own absence.
        source = torch.default_generator if generator is None and stack.device.type == "cpu" else generator
        mark = source.get_state() if self.mixers and source is not None and _deferred.get() is None else None
        while True:
            self._check_quorum(stack)
            ready, back = stack.tamed() if wide else (stack, 1.0)
            outcome = self._attempt(ready, shares, last, back, wide, generator, verdict)
            if (flag := _deferred.get()) is not None:
                flag.logical_or_(outcome.alarm)
                return stack, outcome
            if wide or not bool(outcome.alarm):
                return stack, outcome
            broken = stack.broken_rows()
            if last is not None and not all(bool(torch.isfinite(leaf).all()) for leaf in last):
                raise ValueError("the state must be finite, got NaN or Inf in it")
            wide = not broken
            stack = stack.without(broken) if broken else stack
            if source is not None and mark is not None:
                source.set_state(mark)

    def solve(self, passes: Passes, f: int, shares: Tensor | None) -> Outcome:
        """Aggregate the rows behind `passes` of which f may lie; `shares` are client weights that sum to one."""
        raise TypeError(f"{type(self).__name__} must define solve or, as a GramRule, weights")

    def __rshift__(self, other: object) -> Rule:
        raise TypeError(f"nothing can follow a rule: {self} >> {other}; pre-aggregators stand before it")

    def _read_weights(self, weights: Any, n: int) -> list[float]:
        mixer = next((mixer for mixer in self.mixers if not mixer.keeps_clients), None)
        if mixer is not None:
            raise ValueError(f"client weights need a row a client, but behind {mixer} rows stand for several")
        try:
            shares = [_read_size(w) for w in weights]
        except (TypeError, ValueError) as e:
            raise TypeError(f"weights are wanted as {n} numbers, one a row, got {weights!r}") from e
        if len(shares) != n:
            raise ValueError(f"one weight a row is wanted, got {len(shares)} weights for {n} rows")
        return shares

    def _check_quorum(self, stack: Stack) -> None:
        n, kept = stack.n, len(stack.kept)
        lost = "; ".join(f"row {i}: {reason}" for i, reason in sorted(stack.reasons.items())[:3])
        for stage in self.stages:
            if stage.liars_left(n, n - kept) is None:
                raise QuorumError(
                    f"{stage} needs n >= 2f+1 sound rows, or no more than f broken ones; "
                    f"got {kept} sound and {n - kept} broken of {n} ({lost})"
                )
        if kept < self.least_n:
            raise QuorumError(f"{self} needs at least {self.least_n} sound rows, got {kept} of {n} ({lost})")

    def _attempt(
        self,
        stack: Stack,
        shares: list[float] | None,
        last: Sequence[Tensor] | None,
        back: float,
        wide: bool,
        generator: torch.Generator | None,
        verdict: bool,
    ) -> Outcome:
        n, broken = stack.n, stack.n - len(stack.kept)
        names = dict.fromkeys(name for stage in self.stages for name in stage.anchors)
        anchors = {name: _anchor(name, last, back) for name in names}
        passes = Passes(stack.leaves, anchors, wide=wide, unit=1 / back, verdict=verdict)
        own, *behind = [stage.liars_left(n, broken) or 0 for stage in self.stages]
        for mixer in self.mixers:
            sketch = passes.distances(own) if mixer.needs_distances else passes.bare(own)
            passes.push(mixer.matrix(sketch, generator=generator))
            own, *behind = [mixer.liars_behind(passes.n, f) for f in behind]
        part = None
        if shares is not None:
            part = torch.tensor([shares[i] for i in stack.kept], dtype=torch.float64, device=stack.device)
        outcome = self.core.solve(passes, own, part)
        return outcome if back == 1.0 else outcome.scaled(back)


@dataclass(frozen=True)
class Mixer(Stage):
    """A pre-aggregator: a matrix whose rows say which weighted sums of the rows go on."""

    needs_distances: ClassVar[bool] = True
    keeps_clients: ClassVar[bool] = True
    """Whether row i behind it still stands for client i."""

    @abstractmethod
    def matrix(self, sketch: Sketch, *, generator: torch.Generator | None = None) -> Tensor:
        """(m, n+a) float64, on the rows and anchors of the sketch; each row sums to one."""

    def liars_behind(self, n: int, f: int) -> int:
        """How many of the n rows behind it may be a liar's, if f of those before it may."""
        return f

    def count_behind(self, n: int) -> int:
        """How many rows it makes of n."""
        return n

    def __rshift__(self, other: Any) -> Any:
        if isinstance(other, Rule):
            return Pipe((self, *other.mixers), other.core)
        if isinstance(other, Mixer | Chain):
            return Chain((self,)) >> other
        return NotImplemented


@dataclass(frozen=True)
class Chain:
    """Pre-aggregators in a row that wait for their rule."""

    mixers: tuple[Mixer, ...]

    def __rshift__(self, other: Any) -> Any:
        if isinstance(other, Rule):
            return Pipe((*self.mixers, *other.mixers), other.core)
        if isinstance(other, Mixer | Chain):
            return Chain((*self.mixers, *(other.mixers if isinstance(other, Chain) else (other,))))
        return NotImplemented

    def __str__(self) -> str:
        return " >> ".join(str(mixer) for mixer in self.mixers)


@dataclass(frozen=True)
class Pipe(Rule):
    """Pre-aggregators and the rule behind them: a rule again."""

    front: tuple[Mixer, ...]
    tail: Rule

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

    @abstractmethod
    def weights(self, sketch: Sketch) -> Weights:
        """Coefficients from the sketch: n x n work that never sees d."""

    def solve(self, passes: Passes, f: int, shares: Tensor | None) -> Outcome:
        _refuse_weights(self, shares)
        medians, sketch = passes.sketch(f) if self.needs_median else (None, passes.distances(f))
        w = self.weights(sketch)
        outside, reach = w.outside, w.reach
        if passes.matrix is not None:
            # A sent row is outside when every row it speaks through is, and as near as the nearest of them.
            speaks = passes.matrix[: passes.n, : passes.sent] != 0
            outside = None if outside is None else (outside[:, None] | ~speaks).all(dim=0)
            reach = None if reach is None else reach[:, None].where(speaks, torch.inf).amin(dim=0)
        return Outcome(
            values=passes.combine(w.coefficients, medians),
            weights=passes.through(w.coefficients)[: passes.sent],
            alarm=passes.alarm,
            median_weight=None if medians is None else 1 - w.coefficients.sum(),
            tau=w.tau,
            outside=outside,
            reach=reach,
            verb=w.verb,
            chosen=w.outside is None,
        )


class SortedRule(Rule):
    """A rule that averages, coordinate by coordinate, a range of the sorted values: one pass."""

    @abstractmethod
    def kept(self, n: int, f: int) -> tuple[int, int]:
        """The range lo..hi-1 of the n sorted values that is averaged."""

    def solve(self, passes: Passes, f: int, shares: Tensor | None) -> Outcome:
        _refuse_weights(self, shares)
        lo, hi = self.kept(passes.n, f)
        values = passes.trim(lo, hi)
        return Outcome(values, passes.shares(lo, hi) if passes.verdict else None, passes.alarm)


@contextmanager
def deferred_alarm(flag: Tensor) -> Iterator[None]:
    """Inside, a rule does not ask for its alarm but adds it to `flag` (), so that a round can be one CUDA graph.

    Whoever opens this must look at the flag later and do again, outside it, what came out with the flag set.
    """
    token = _deferred.set(flag)
    try:
        yield
    finally:
        _deferred.reset(token)


_deferred: ContextVar[Tensor | None] = ContextVar("deferred_alarm", default=None)

stages: Registry[Stage] = Registry("rule or pre-aggregator", Stage, "robagg.rules", "robagg.mixers")


def parse(text: str | Rule, *, f: F = None) -> Rule:
    """Read a rule or a chain from text; `f` goes to every part that takes one and does not name it.

    >>> parse("nnm >> tq", f=6)
    Pipe(front=(NNM(f=6),), tail=TQ(f=6, iterations=10))
    >>> str(parse("bucketing(s=2) >> tq(iterations=20)", f=6))
    'bucketing >> tq(f=6, iterations=20)'
    """
    if isinstance(text, Rule):
        return text
    if not isinstance(text, str):
        raise TypeError(f"a rule is wanted as text, such as 'nnm >> tq', got {text!r}")
    *mixers, last = [stages.parse(part, f=f) for part in text.split(">>")]
    wrong = next((m for m in mixers if not isinstance(m, Mixer)), None)
    if wrong is not None:
        raise ValueError(f"only pre-aggregators stand before >>, but {wrong} is a rule: {text!r}")
    if not isinstance(last, Rule):
        raise ValueError(f"a chain ends in a rule, but {last} is a pre-aggregator: {text!r}")
    return Pipe(tuple(m for m in mixers if isinstance(m, Mixer)), last) if mixers else last


def _anchor(name: str, last: Sequence[Tensor] | None, back: float) -> Sequence[Tensor] | None:
    if name == "origin" or last is None:
        return None
    return [leaf.double() / back if back != 1.0 else leaf for leaf in last]


def _read_size(weight: Any) -> float:
    try:
        return float(weight)
    except OverflowError:  # 10**400 is what a client said, and no size
        return math.inf


def _refuse_weights(rule: Rule, shares: Tensor | None) -> None:
    if shares is not None:
        raise ValueError(f"only Mean takes client weights; {type(rule).__name__} counts every row alike")
