"""The search for worst stacks: what it reports is true of the public rule, and it finds what is known to be there."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
import typer
from torch import Tensor
from typer.testing import CliRunner

import oracle
from robagg import CM, TQ, GramRule, Huber, Mean, Rule, SortedRule, parse, theory
from robagg._core.mixer import Mixer
from robagg._core.outcome import Outcome
from robagg._core.passes import Passes
from robagg._core.rule import stages
from robagg._core.tolerance import F
from robagg.cli.worst_case import worst_case as command
from robagg.worst_case import Growth, WorstCase, find_worst_case, walk
from robagg.worst_case.evaluate import evaluate_batch, evaluate_each

RULES = [name for name, cls in stages.classes().items() if issubclass(cls, Rule)]
MIXERS = [name for name, cls in stages.classes().items() if issubclass(cls, Mixer)]
CHAINS = ["bucketing(s=3) >> nnm >> tq", "nnm >> bucketing >> tq", "clipping(norm=2.0) >> nnm >> cm"]
EVERY = [*RULES, *(f"{mixer} >> {rule}" for mixer in MIXERS for rule in RULES), *CHAINS]

app = typer.Typer()
app.command()(command)


def run(*words: str) -> Any:
    return CliRunner().invoke(app, list(words), env={"COLUMNS": "120"})


def measure(found: WorstCase, rule: str) -> float:
    """The ratio of the stack found, from nothing but the public rule."""
    honest = found.stack[list(found.honest)]
    centre = honest.mean(dim=0)
    g = torch.Generator().manual_seed(found.seed)
    value = parse(rule, f=found.f)(found.stack, generator=g)
    return float((value - centre).square().sum() / ((honest - centre).square().sum() / len(honest)))


@pytest.mark.filterwarnings("ignore:.* was given no root:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:.* protects as proved with:RuntimeWarning")
@pytest.mark.parametrize("text", EVERY)
def test_many_stacks_at_once_give_what_the_rule_gives_one_by_one(text: str) -> None:
    rule = parse(text, f=3)
    x = torch.randn(20, 9, 3, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    x[:, 6:] *= 10
    batch = evaluate_batch(rule, 9, 7)
    maps_well = getattr(rule.core, "maps_well", True)  # one call after the other is faster where a rule has a C loop
    by_kind = isinstance(rule.core, GramRule | SortedRule | Mean) and "root" not in rule.core.anchors
    if text == "nnm >> onecentre":  # coincident rows are as good centres as each other: rounding decides
        return
    assert ("evaluate_batch" if maps_well and by_kind else "evaluate_each") in batch.__qualname__
    assert torch.allclose(batch(x), evaluate_each(rule, 7)(x), rtol=1e-9)


@dataclass(frozen=True)
class First(Rule):
    """A rule of a user's own that only has `solve`: its value is the first row."""

    f: F = None

    def solve(self, passes: Passes, f: int, shares: Tensor | None) -> Outcome:
        part = torch.nn.functional.one_hot(torch.tensor(0), passes.n).double()
        return Outcome(passes.combine(part), part, passes.alarm)


def test_a_rule_that_cannot_be_batched_is_searched_all_the_same() -> None:
    found = find_worst_case(First(), 5, 2, budget=600)
    assert 500 < found.evaluations <= 700
    assert 1 < found.ratio <= 2 + 1e-9  # one of h rows lies at most sqrt(h-1) roots of Var from their mean


@pytest.mark.parametrize("text", ["tq", "krum", "cm", "rfa", "cc", "nnm >> tq", "bucketing >> tm", "mean"])
def test_the_reported_ratio_is_that_of_the_public_rule(text: str) -> None:
    found = find_worst_case(text, 9, 3, budget=2000, seed=3)
    assert measure(found, text) == pytest.approx(found.ratio, rel=1e-6)
    assert len(found.honest) == 6
    assert found.stack.shape == (9, 2)


def test_the_same_seed_finds_the_same_stack() -> None:
    one, again = find_worst_case("tq", 7, 2, budget=1500, seed=1), find_worst_case("tq", 7, 2, budget=1500, seed=1)
    assert torch.equal(one.stack, again.stack)


def test_the_search_finds_more_than_what_no_rule_can_avoid() -> None:
    assert find_worst_case("tq", 7, 2, budget=8000, seed=1).ratio > theory.least_kappa(7, 2)


def test_the_mean_is_shown_broken_by_growth_with_the_byzantine_distance() -> None:
    found = find_worst_case("mean", 11, 1, budget=1000)
    assert found.broken
    assert found.bound is None
    assert "broken" in found.verdict
    ratios = found.growth[0].ratios
    for near, far in pairwise(ratios):
        assert far / near == pytest.approx(100, rel=0.05)


@pytest.mark.parametrize(
    "text", ["tq", "huber", "cm", "tm", "krum", "multikrum", "mca", "caf", "spectralfilter", "nnm >> tq"]
)
def test_robust_rules_are_not_broken(text: str) -> None:
    found = find_worst_case(text, 11, 3, budget=2000)
    assert not found.broken
    assert found.unbounded is None


def test_bucketing_of_two_is_broken_by_more_byzantine_rows_than_it_bears() -> None:
    assert find_worst_case("bucketing >> tq", 11, 5, budget=2000).broken


@pytest.mark.parametrize(
    ("text", "along"), [("rfa", "how close"), ("cc", "how close"), ("clipping >> cm", "how close")]
)
def test_rules_with_a_length_or_an_origin_are_reported_to_have_no_kappa(text: str, along: str) -> None:
    found = find_worst_case(text, 11, 5, budget=3000)
    assert not found.broken
    assert found.unbounded is not None
    assert found.unbounded.along.startswith(along)
    assert found.verdict.startswith("no kappa can hold")


@pytest.mark.parametrize("text", ["cm", "tm"])
def test_known_worst_cases_are_found(text: str) -> None:
    found = find_worst_case(text, 11, 5, budget=20_000)
    assert found.ratio == pytest.approx(5.0, rel=1e-3)  # f/(n-2f), which is what no rule can go below
    assert found.verdict == "the worst found is within the bound"


def test_the_estimated_tau_exceeds_the_bound_of_the_true_one_for_small_f() -> None:
    estimated, true = (find_worst_case("tq", 20, 1, budget=10_000, tau=tau) for tau in ("estimated", "true"))
    assert estimated.ratio > 2 * theory.kappa_tq(1 / 20) > true.ratio
    assert (
        estimated.verdict
        == "the worst found exceeds the bound: the bound is for the true tau, not for this estimate of it"
    )
    assert true.verdict == "the worst found is within the bound"


@pytest.mark.parametrize("rule", ["tq", "huber"])
def test_a_far_start_alone_does_not_pass_for_unbounded(rule: str) -> None:
    found = find_worst_case(rule, 11, 5, budget=2000, start="far")
    assert found.unbounded is None
    assert found.steps == theory.steps_needed(5 / 11, 100.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "f"), [(11, 5), (20, 9)])
def test_far_starts_exceed_the_bound_near_one_half(n: int, f: int) -> None:
    found = find_worst_case("tq", n, f, budget=50_000, tau="true", start="far")
    assert found.ratio > found.bound
    assert found.verdict == "the worst found exceeds the bound: the bound does not cover this start"
    assert found.start_point is not None
    again = walk(TQ(f=f), found.stack, n - f, start=found.start_point, tau="true", steps=found.steps)
    assert torch.allclose(again, found.value)


@pytest.mark.slow
@pytest.mark.parametrize("tau", ["estimated", "true"])
def test_the_worst_of_tq_at_eleven_and_five_is_within_the_bound_from_the_median(tau: str) -> None:
    found = find_worst_case("tq", 11, 5, tau=tau)
    assert 15 < found.ratio < 0.1 * found.bound
    assert found.seconds < 60


@pytest.mark.parametrize("rule", [TQ(f=3, iterations=4), Huber(f=3, iterations=4)])
def test_a_walk_with_the_true_tau_is_the_plain_loop_over_rows(rule: TQ | Huber) -> None:
    x = torch.randn(10, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x[7:] += 2.0
    rows = x.tolist()
    centre = oracle.mean(rows[:7])
    variance = math.fsum(oracle.squared(row, centre) for row in rows[:7]) / 7
    v = oracle.cm(rows)
    for _ in range(4):
        tau = math.sqrt(7 / 3 * (oracle.squared(v, centre) + variance))
        if isinstance(rule, Huber):
            v = oracle.clipped_step(rows, v, tau)
        else:
            inside = [row for row in rows if oracle.distance(row, v) <= tau]
            v = [c + math.fsum(row[j] - c for row in inside) / 10 for j, c in enumerate(v)]
    assert walk(rule, x, 7, tau="true").tolist() == pytest.approx(v)
    assert torch.allclose(walk(rule, x, 7), rule(x))


def test_growth_that_levels_off_is_bounded() -> None:
    assert Growth("", (1.0, 100.0, 1e4, 1e6)).unbounded
    assert not Growth("", (1.0, 50.0, 80.0, 81.0)).unbounded
    assert not Growth("", (30.0, 1e-9, 1e-7, 1e-5)).unbounded


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"n": 10, "f": 5}, "n must be at least 2f\\+1, got n=10, f=5"),
        ({"f": 0}, "f must be at least 1, got 0"),
        ({"budget": 0}, "budget must be at least 1, got 0"),
        ({"tau": "known"}, 'tau must be "estimated" or "true", got \'known\''),
        ({"start": "near"}, 'start must be "median" or "far", got \'near\''),
        ({"rule": "krum", "tau": "true"}, "rule must be TQ or Huber, without pre-aggregators"),
        ({"rule": "rfa", "tau": "true"}, "rule must be TQ or Huber, without pre-aggregators"),
        ({"rule": "nnm >> tq", "start": "far"}, "rule must be an iterative rule"),
        ({"rule": "tq(f=6)"}, "n must be at least 2f\\+1"),
    ],
)
def test_what_cannot_be_searched_is_refused_with_a_sentence(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        find_worst_case(**{"rule": "tq", "n": 11, "f": 3, "budget": 300} | given)
    with pytest.raises(TypeError, match="n must be a whole number"):
        find_worst_case(CM(), 11.0, 2)  # type: ignore[arg-type]


def test_the_command_prints_the_ratio_beside_the_bound() -> None:
    shown = run("tq", "--n", "11", "--f", "5", "--budget", "2000")
    assert shown.exit_code == 0
    assert shown.output.count("439.1") == 4
    for text in ("estimated", "true", "median", "far", "within the bound", "Byzantine:"):
        assert text in shown.output
    broken = run("mean", "--budget", "600")
    assert "broken: the ratio grows without bound with" in " ".join(broken.output.split())


def test_the_command_prints_json_that_holds_the_stack() -> None:
    shown = run("nnm >> cm", "--n", "9", "--f", "2", "--budget", "600", "--json")
    (found,) = json.loads(shown.stdout)
    assert found["rule"] == "nnm(f=2) >> cm(f=2)"
    assert len(found["stack"]) == 9
    assert found["bound"] == pytest.approx(theory.kappa("nnm >> cm", 9, 2))
    assert found["verdict"] == "the worst found is within the bound"


def test_numpy_numbers_are_taken() -> None:
    n, f = np.int64(5), np.int64(2)
    assert find_worst_case("cm", n, f, budget=500).ratio == find_worst_case("cm", 5, 2, budget=500).ratio  # type: ignore[arg-type]
