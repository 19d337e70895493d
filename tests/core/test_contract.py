"""Rules and pre-aggregators of a user's own: no sketch that is not finite, and no answer that goes unseen."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

import robagg as ra
from robagg._core.aggregate import Request, aggregate
from robagg._core.outcome import Outcome
from robagg._core.stack import read


def draw_rows(n: int, d: int = 6, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)


@dataclass(frozen=True)
class Spectral(ra.GramRule):
    """The mean, by one who looks at the eigenvalues first and cannot bear NaN; it writes down what it saw."""

    f: ra.F = None
    seen: list[Tensor] = field(default_factory=list, compare=False, repr=False)
    needs_median: ClassVar[bool] = False

    def __str__(self) -> str:
        return "spectral"

    def weights(self, sketch: ra.Sketch) -> ra.Weights:
        self.seen.append(sketch.gram)
        torch.linalg.eigh(sketch.gram)
        return ra.Weights(sketch.on_rows(torch.full((sketch.n,), 1 / sketch.n, dtype=torch.float64)))


@dataclass(frozen=True)
class SpectralMixer(ra.Mixer):
    """The rows as they are, by one who looks at the eigenvalues."""

    seen: list[Tensor] = field(default_factory=list, compare=False, repr=False)

    def __str__(self) -> str:
        return "spectralmixer"

    def matrix(self, sketch: ra.Sketch, *, generator: torch.Generator | None = None) -> Tensor:
        self.seen.append(sketch.gram)
        torch.linalg.eigh(sketch.gram)
        return torch.eye(sketch.n, len(sketch.gram), dtype=torch.float64)


POISON = [math.nan, math.inf, -math.inf, 1e20, 3e38, "1e300"]


@pytest.mark.parametrize("value", POISON)
@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("chain", ["rule", "mixer", "bucketing", "nnm"])
def test_nobody_sees_a_sketch_that_is_not_finite(value: Any, captured: bool, chain: str) -> None:
    x = draw_rows(9, dtype=torch.float64 if isinstance(value, str) else torch.float32)
    clean = x[:8].clone()
    x[8] = float(value)
    rule, mixer = Spectral(f=1), SpectralMixer()
    whole: ra.Rule = {
        "rule": rule,
        "mixer": mixer >> ra.CM(f=1),
        "bucketing": ra.Bucketing(s=1) >> rule,
        "nnm": ra.NNM(f=1) >> (mixer >> rule),
    }[chain]
    alarm = torch.zeros((), dtype=torch.bool)
    _, outcome = aggregate(whole, read(x), Request(alarm=alarm if captured else None, verdict=True))
    assert rule.seen or mixer.seen
    assert all(bool(torch.isfinite(gram).all()) for gram in rule.seen + mixer.seen)
    if captured:
        assert bool(alarm) == (not math.isfinite(float(value)) or value == "1e300" or float(value) > 1e19)
    elif not math.isfinite(float(value)) and chain == "rule":
        torch.testing.assert_close(outcome.values[0], clean.mean(0))


def test_a_sound_captured_call_of_a_users_own_rule_sets_no_alarm() -> None:
    alarm, x = torch.zeros((), dtype=torch.bool), draw_rows(9)
    _, outcome = aggregate(SpectralMixer() >> Spectral(), read(x), Request(alarm=alarm))
    assert not alarm
    torch.testing.assert_close(outcome.values[0], x.mean(0))


# What comes back


@dataclass(frozen=True)
class Answers(ra.GramRule):
    """A rule that answers what it is given to answer."""

    f: ra.F = None
    answer: Callable[[ra.Sketch], Any] = field(default=lambda sketch: None, repr=False)

    def __str__(self) -> str:
        return "answers"

    def weights(self, sketch: ra.Sketch) -> ra.Weights:
        return self.answer(sketch)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class AboutTheMedian(Answers):
    """The same for one whose rest is the median's."""

    needs_median: ClassVar[bool] = True


def share(sketch: ra.Sketch, total: float) -> Tensor:
    return sketch.on_rows(torch.full((sketch.n,), total / sketch.n, dtype=torch.float64))


WRONG: dict[str, tuple[Callable[[ra.Sketch], Any], str]] = {
    "a tensor": (lambda s: share(s, 1), "answers: weights must return robagg.Weights, got Tensor"),
    "nothing": (lambda s: None, "answers: weights must return robagg.Weights, got None"),
    "an array": (
        lambda s: ra.Weights(share(s, 1).numpy()),  # type: ignore[arg-type]
        "answers must give a coefficient for each of 7 rows and anchors as a tensor, got ndarray",
    ),
    "too few": (
        lambda s: ra.Weights(share(s, 1)[1:]),
        "answers must give a coefficient for each of 7 rows and anchors, got shape (6,)",
    ),
    "twice as much": (lambda s: ra.Weights(share(s, 2)), "with a sum of 1, got 2"),
    "half": (lambda s: ra.Weights(share(s, 0.5)), "with a sum of 1, got 0.5"),
    "NaN": (lambda s: ra.Weights(share(s, math.nan)), "with a sum of 1, got nan"),
    "one Inf": (lambda s: ra.Weights(share(s, 1).index_fill(0, torch.tensor(2), math.inf)), "got inf"),
    "tau as a number": (
        lambda s: ra.Weights(share(s, 1), tau=3.0),  # type: ignore[arg-type]
        "answers must give Weights.tau of shape () as a tensor, got float",
    ),
    "outside too long": (
        lambda s: ra.Weights(share(s, 1), outside=torch.zeros(9, dtype=torch.bool)),
        "answers must give Weights.outside of shape (7,), got shape (9,)",
    ),
    "another treatment": (
        lambda s: ra.Weights(share(s, 1), treatment="rejected"),  # type: ignore[arg-type]
        "answers must give Weights.treatment as a robagg.Treatment, got str",
    ),
    "an exception": (lambda s: {}["gone"], "answers: weights raised KeyError: 'gone'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_a_rule_gives_is_looked_at(case: str) -> None:
    answer, words = WRONG[case]
    for rule in (Answers(answer=answer), ra.NNM(f=1) >> Answers(answer=answer)):
        for call in (rule, rule.explain, rule.step):
            with pytest.raises(ra.PluginError, match=re.escape(words)):
                call(draw_rows(7))


def test_a_rule_about_the_median_may_leave_it_a_rest_and_no_more() -> None:
    x = draw_rows(7)
    for total in (0.0, 0.4, 1.0):
        verdict = AboutTheMedian(answer=lambda s, total=total: ra.Weights(share(s, total))).explain(x)
        assert verdict.median_weight == pytest.approx(1 - total)
    for total in (2.0, -0.5, math.nan):
        words = f"with a sum from 0 to 1 (the rest is the median's), got {total:g}"
        with pytest.raises(ra.PluginError, match=re.escape(words)):
            AboutTheMedian(answer=lambda s, total=total: ra.Weights(share(s, total)))(x)


@pytest.mark.parametrize("case", ["twice as much", "half", "NaN", "one Inf"])
def test_a_wrong_sum_in_a_captured_call_sets_the_alarm(case: str) -> None:
    alarm = torch.zeros((), dtype=torch.bool)
    aggregate(Answers(answer=WRONG[case][0]), read(draw_rows(7)), Request(alarm=alarm))
    assert alarm


def test_float32_coefficients_of_a_thousand_rows_sum_to_one_closely_enough() -> None:
    rule = Answers(answer=lambda s: ra.Weights(torch.softmax(torch.rand(s.n), 0)))
    assert bool(torch.isfinite(rule(draw_rows(1000))).all())


def test_an_error_names_its_cause() -> None:
    with pytest.raises(ra.PluginError) as caught:
        Answers(answer=lambda s: 1 / 0)(draw_rows(7))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_too_few_rows_said_by_a_rule_itself_stay_that() -> None:
    def refuse(sketch: ra.Sketch) -> Any:
        raise ra.QuorumError("not today")

    with pytest.raises(ra.QuorumError, match="not today"):
        Answers(answer=refuse)(draw_rows(7))


@dataclass(frozen=True)
class Mixes(ra.Mixer):
    """A pre-aggregator that answers what it is given to answer."""

    answer: Callable[[ra.Sketch], Any] = field(default=lambda sketch: None, repr=False)

    def __str__(self) -> str:
        return "mixes"

    def matrix(self, sketch: ra.Sketch, *, generator: torch.Generator | None = None) -> Tensor:
        return self.answer(sketch)  # type: ignore[no-any-return]


def identity(sketch: ra.Sketch) -> Tensor:
    return torch.eye(sketch.n, len(sketch.gram), dtype=torch.float64)


UNMIXED: dict[str, tuple[Callable[[ra.Sketch], Any], str]] = {
    "nothing": (lambda s: None, "mixes must give a matrix of 7 rows and a column for each of 7 rows and anchors as a"),
    "an array": (lambda s: np.eye(7), "as a tensor, got ndarray"),
    "fewer rows": (lambda s: identity(s)[1:], "each of 7 rows and anchors, got shape (6, 7)"),
    "rows of sum 2": (lambda s: 2 * identity(s), "mixes: each row of the matrix must be finite with a sum of 1, got 2"),
    "one row of sum 0": (lambda s: identity(s).index_fill(0, torch.tensor(3), 0.0), "with a sum of 1, got 0"),
    "NaN": (lambda s: identity(s) * math.nan, "with a sum of 1, got nan"),
    "an exception": (lambda s: identity(s).view(3, 3), "mixes: matrix raised RuntimeError: shape"),
}


@pytest.mark.parametrize("case", UNMIXED)
@pytest.mark.parametrize("behind", [ra.CM(f=1), ra.TQ(f=1), ra.Krum(f=1), ra.Mean()])
def test_what_a_pre_aggregator_gives_is_looked_at(case: str, behind: ra.Rule) -> None:
    answer, words = UNMIXED[case]
    with pytest.raises(ra.PluginError, match=re.escape(words)):
        (Mixes(answer=answer) >> behind)(draw_rows(7))


@pytest.mark.parametrize("case", ["rows of sum 2", "one row of sum 0", "NaN"])
def test_a_wrong_matrix_in_a_captured_call_sets_the_alarm(case: str) -> None:
    alarm = torch.zeros((), dtype=torch.bool)
    aggregate(Mixes(answer=UNMIXED[case][0]) >> ra.CM(f=1), read(draw_rows(7)), Request(alarm=alarm))
    assert alarm


@dataclass(frozen=True)
class Keeps(ra.SortedRule):
    """A sorted rule that keeps what it is given to keep."""

    f: ra.F = None
    answer: Any = None

    def __str__(self) -> str:
        return "keeps"

    def kept(self, n: int, f: int) -> tuple[int, int]:
        return self.answer() if callable(self.answer) else self.answer  # type: ignore[no-any-return]


@pytest.mark.parametrize("answer", [None, (3, 3), (0, 8), (-1, 4), (1, 2, 3), (1.0, 4.0), (True, 4)])
def test_the_range_that_a_sorted_rule_keeps_is_looked_at(answer: Any) -> None:
    words = f"keeps: kept must return whole numbers 0 <= lo < hi <= 7, got {answer!r}"
    with pytest.raises(ra.PluginError, match=re.escape(words)):
        Keeps(answer=answer)(draw_rows(7))
    assert torch.equal(Keeps(answer=(np.int64(1), 6))(draw_rows(7)), ra.TM(f=1)(draw_rows(7)))
    with pytest.raises(ra.PluginError, match="keeps: kept raised ZeroDivisionError"):
        Keeps(answer=lambda: 1 // 0)(draw_rows(7))


@dataclass(frozen=True)
class Pulls(ra.IterativeRule):
    """A rule that walks and fails on the way."""

    f: ra.F = None
    iterations: int = 2
    needs_median: ClassVar[bool] = True

    def pull(self, sketch: ra.Sketch, c: Tensor, squared: Tensor) -> ra.Pull:
        return squared  # type: ignore[return-value]


def test_a_pull_that_is_none_is_told_with_the_rules_name() -> None:
    with pytest.raises(ra.PluginError, match=r"pulls\(f=2\): pull raised AttributeError"):
        Pulls(f=2)(draw_rows(7))


@dataclass(frozen=True)
class Solves(ra.Rule):
    """A rule that makes the value itself."""

    f: ra.F = None
    answer: Any = None

    def __str__(self) -> str:
        return "solves"

    def solve(self, passes: Any, f: int, shares: Tensor | None) -> Outcome:
        return self.answer(passes)  # type: ignore[no-any-return]


def outcome(*values: Any) -> Outcome:
    return Outcome(list(values), None, torch.zeros((), dtype=torch.bool))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda p: torch.zeros(6), "solves: solve must return robagg's Outcome, got Tensor"),
        (lambda p: outcome(), "solves: solve must give 1 values, got list"),
        (lambda p: outcome(np.zeros(6)), "solves must give a value of shape (6,) as a tensor, got ndarray"),
        (lambda p: outcome(torch.zeros(5)), "solves must give a value of shape (6,), got shape (5,)"),
        (lambda p: outcome(torch.full((6,), math.nan)), "solves: solve must give a finite value, got NaN or Inf in it"),
        (lambda p: 1 / 0, "solves: solve raised ZeroDivisionError: division by zero"),
    ],
)
def test_a_value_that_a_rule_makes_itself_is_looked_at(answer: Any, words: str) -> None:
    with pytest.raises(ra.PluginError, match=re.escape(words)):
        Solves(answer=answer)(draw_rows(7))
    assert torch.equal(Solves(answer=lambda p: outcome(p.leaves[0][2]))(draw_rows(7)), draw_rows(7)[2])


# Clipping of one row


@pytest.mark.parametrize("text", ["clipping(norm=1e-31) >> mean", "clipping(norm=1e-31) >> tq"])
@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.filterwarnings("ignore:.* tolerates nobody with:RuntimeWarning")
def test_rows_whose_squares_vanish_are_clipped_however_few(text: str, n: int) -> None:
    row = torch.full((n, 4), 1e-30)
    assert float(ra.parse(text)(row).double().norm()) == pytest.approx(1e-31, rel=1e-5)
    assert float(ra.parse("cc(tau=1e-31)")(row).double().norm()) == pytest.approx(1e-31, rel=1e-5)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rule", [ra.CM(f=2), ra.Krum(f=2)])
def test_neighbours_of_clipped_rows_are_told_apart_far_from_the_origin(seed: int, rule: ra.Rule) -> None:
    """Rows of length 2.7e6 that differ in the eighth digit; clipped one by one they differ in it still."""
    g = torch.Generator().manual_seed(seed)
    base = torch.randn(50, generator=g, dtype=torch.float64)
    x = 2.7e6 * (base / base.norm() + 1e-8 / 50**0.5 * torch.randn(9, 50, generator=g, dtype=torch.float64))
    clipped = x / x.norm(dim=1, keepdim=True)
    wanted = (ra.NNM(f=2) >> rule).explain(clipped)
    found = (ra.Clipping(norm=1.0) >> (ra.NNM(f=2) >> rule)).explain(x)
    torch.testing.assert_close(found.value, wanted.value, rtol=0, atol=1e-14)
