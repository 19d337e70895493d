"""Chains, state, weights, and what the verdict prints."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

import oracle
import robagg as ra
from robagg._core.aggregate import Request, aggregate
from robagg._core.mixer import Chain, Mixer
from robagg._core.outcome import Weights
from robagg._core.rule import GramRule
from robagg._core.sketch import Sketch
from robagg._core.stack import read
from robagg._core.tolerance import resolve_f, tolerance_left

pytestmark = pytest.mark.filterwarnings("ignore:client weights change nothing:RuntimeWarning")


def draw_rows(n: int, d: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@dataclass(frozen=True)
class HalfWay(Mixer):
    """Each row half way to the mean, in a dtype that nobody asked for."""

    needs_distances: ClassVar[bool] = False

    def matrix(self, sketch: Sketch, *, generator: torch.Generator | None = None) -> torch.Tensor:
        n = sketch.n
        return torch.nn.functional.pad(torch.eye(n) / 2 + 0.5 / n, (0, len(sketch.gram) - n))


@pytest.mark.parametrize("rule", [ra.TQ(f=2), ra.CM(f=2), ra.Krum(f=2), ra.Mean(), ra.CC(f=2)])
def test_a_mixing_matrix_may_have_any_dtype(rule: ra.Rule) -> None:
    x = draw_rows(7, 50)
    mixed = x / 2 + x.mean(0) / 2
    torch.testing.assert_close((HalfWay() >> rule)(x), rule(mixed), rtol=1e-6, atol=1e-6)


@dataclass(frozen=True)
class Plain(GramRule):
    """The mean, by weights in a dtype that nobody asked for."""

    short: ClassVar[int] = 0

    def weights(self, sketch: Sketch) -> Weights:
        return Weights(sketch.on_rows(torch.full((sketch.n,), 1 / sketch.n)).float()[self.short :])


def test_weights_may_have_any_dtype_and_must_be_one_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    x = draw_rows(8, 50)
    torch.testing.assert_close(Plain().explain(x).value, x.mean(0), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close((ra.Bucketing(s=2) >> Plain())(x), x.mean(0), rtol=1e-6, atol=1e-6)
    monkeypatch.setattr(Plain, "short", 2)
    with pytest.raises(ra.PluginError, match="plain must give a coefficient for each of 8 rows and anchors, got shape"):
        Plain()(x)


def test_a_mixing_matrix_of_another_width_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = HalfWay.matrix
    monkeypatch.setattr(HalfWay, "matrix", lambda self, sketch, *, generator=None: whole(self, sketch)[:, :-2])
    with pytest.raises(ra.PluginError, match=r"a column for each of 7 rows and anchors, got shape .7, 5"):
        (HalfWay() >> ra.CM(f=2))(draw_rows(7, 50))


@pytest.mark.parametrize(
    "text", ["tq", "huber", "krum", "rfa", "cm", "nnm >> tq", "nnm >> cm", "bucketing(s=2) >> mca"]
)
def test_a_value_does_not_depend_on_whether_a_verdict_is_asked_for(text: str) -> None:
    rule, stack = ra.parse(text, f=2), read(draw_rows(9, 40))
    values = [
        aggregate(rule, stack, Request(verdict=verdict, generator=torch.Generator().manual_seed(1)))[1].values[0]
        for verdict in (False, True)
    ]
    assert torch.equal(*values)


# f


@given(n=st.integers(1, 200), share=st.floats(0, 0.5, exclude_max=True))
def test_a_share_is_never_more_than_n_allows_and_never_less_than_said(n: int, share: float) -> None:
    f = resolve_f(share, n, "rule")
    assert n >= 2 * f + 1
    assert f >= share * n - 1e-6 or f == (n - 1) // 2
    assert f < share * n + 1


@pytest.mark.parametrize("n", range(1, 400))
def test_a_share_that_is_a_whole_number_of_rows_is_that_number(n: int) -> None:
    assert [resolve_f(f / n, n, "rule") for f in range((n + 1) // 2)] == [*range((n + 1) // 2)]
    assert resolve_f(0.3, 10 * n, "rule") == 3 * n and resolve_f(0.0, n, "rule") == 0


@given(n=st.integers(1, 60), data=st.data())
def test_f_for_the_rest_is_what_the_contract_says(n: int, data: Any) -> None:
    f = data.draw(st.integers(0, (n - 1) // 2))
    q = data.draw(st.integers(0, n))
    rest = tolerance_left(f, n, q)
    if n - q >= 2 * f + 1:
        assert rest == f
    elif q <= f and q < n:
        assert rest == (n - q - 1) // 2
        assert rest >= f - q
    else:
        assert rest is None


# Tau


@dataclass(frozen=True)
class StepByStep(ra.TQ):
    """TQ without its kernel: a subclass may pull otherwise."""


@pytest.mark.parametrize("rule", [ra.TQ(f=1), StepByStep(f=1), ra.NNM(f=0) >> StepByStep(f=1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", range(10))
def test_rows_at_tau_are_inside_whatever_rounding_does(rule: ra.Rule, dtype: torch.dtype, seed: int) -> None:
    """Of -2, -1, 0, 1, 2 the MAD is 1, and tau at the median is 2."""
    g = torch.Generator().manual_seed(seed)
    base, along = torch.randn(2, 7, generator=g, dtype=torch.float64).to(dtype)
    x = base + torch.arange(-2, 3)[:, None].to(dtype) * along
    verdict = rule.explain(x)
    assert not verdict.rejected.any(), verdict.reasons
    torch.testing.assert_close(verdict.value, x[2])


# Chains


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.int64, np.uint64])
def test_f_is_kept_as_a_number_of_pythons_own(kind: Any) -> None:
    assert json.dumps([stage.f for stage in (ra.TQ(f=kind(2)), ra.NNM(f=kind(2)), ra.NNM() >> ra.CM(f=kind(2)))])
    assert type(ra.CM(f=np.float32(0.25)).f) is float
    assert ra.TQ(f=kind(2)) == ra.TQ(f=2) and repr(ra.TQ(f=kind(2))) == repr(ra.TQ(f=2))
    with pytest.raises(ValueError, match="n must be at least 2f\\+1, got n=9, f=125"):
        ra.TQ(f=kind(125))(draw_rows(9, 3))
    with pytest.raises(ValueError, match="n must be at least 2f"):
        resolve_f(np.uint8(130), 9, "a rule")


@dataclass(frozen=True)
class Unchecked(ra.SortedRule):
    """A rule of a user's own that checks its parameters itself."""

    f: Any = None

    def __post_init__(self) -> None:
        pass

    def kept(self, n: int, f: int) -> tuple[int, int]:
        return f, n - f


def test_a_chain_takes_a_rule_with_numbers_of_numpys() -> None:
    x = draw_rows(9, 4)
    assert torch.equal((ra.NNM(f=2) >> Unchecked(f=np.int64(2)))(x), (ra.NNM(f=2) >> ra.TM(f=2))(x))


def test_a_chain_is_the_same_however_it_is_put_together() -> None:
    a, b, c = ra.Clipping(), ra.NNM(f=1), ra.TQ(f=1)
    pipe = a >> b >> c
    assert pipe == a >> (b >> c) == ra.Pipe((a, b), c)
    assert pipe.mixers == (a, b)
    assert pipe.core is c
    assert pipe.f == 1
    assert isinstance(a >> b, Chain)
    assert str(a >> b) == "clipping >> nnm(f=1)"
    assert (a >> b) >> (ra.Bucketing() >> c) == a >> (b >> ra.Bucketing()) >> c
    assert hash(pipe) == hash(ra.Pipe((a, b), c))
    assert pipe != b >> a >> c


def test_nothing_follows_a_rule_and_nothing_strange_a_pre_aggregator() -> None:
    with pytest.raises(TypeError, match="what stands before >> must be a pre-aggregator, got tq >> nnm"):
        ra.TQ() >> ra.NNM()
    for wrong in (3, "tq", None):
        with pytest.raises(TypeError):
            ra.NNM() >> wrong
        with pytest.raises(TypeError):
            (ra.NNM() >> ra.NNM()) >> wrong


@pytest.mark.parametrize("s", [1, 2, 3, 7, 20, 50])
@pytest.mark.filterwarnings("ignore:.* tolerates nobody with:RuntimeWarning")
def test_stages_behind_bucketing_get_the_f_that_so_few_rows_can_bear(s: int) -> None:
    x = draw_rows(20, 3)
    for text in ("bucketing(s={}) >> nnm >> tq", "bucketing(s={}) >> nnm >> tm", "nnm >> bucketing(s={}) >> krum"):
        rule = ra.parse(text.format(s), f=9)
        assert bool(torch.isfinite(rule(x)).all())


def test_buckets_hold_every_row_once_with_equal_parts_to_the_last_digit() -> None:
    x = draw_rows(7, 3)
    verdict = (ra.Bucketing(s=3) >> ra.Krum()).explain(x, generator=torch.Generator().manual_seed(1))
    parts = sorted(w for w in verdict.weights.tolist() if w)
    assert parts in ([1 / 3] * 3, [1.0])


def test_a_generator_is_used_as_far_as_one_call_needs_it() -> None:
    """A second attempt, for a broken row, draws from where the first began."""
    x = draw_rows(9, 3)
    rule = ra.Bucketing() >> ra.CM()
    a, b = torch.Generator().manual_seed(5), torch.Generator().manual_seed(5)
    broken = torch.cat([x, torch.full((1, 3), math.nan, dtype=torch.float64)])
    assert torch.equal(rule(broken, generator=a), rule(x, generator=b))
    assert torch.equal(a.get_state(), b.get_state())


# State


def test_cc_starts_from_the_last_aggregate_and_moves_no_further_than_tau() -> None:
    rule, x = ra.CC(tau=0.5, iterations=2), draw_rows(6, 4)
    x[5] = 1e30
    state = None
    last = [0.0] * 4
    for _ in range(3):
        verdict, state = rule.step(x, state)
        wanted = oracle.cc(x.tolist(), 0.5, 2, last)
        assert verdict.value.tolist() == pytest.approx(wanted, abs=1e-9)
        assert math.dist(verdict.value.tolist(), last) <= 2 * 0.5 + 1e-9
        assert torch.equal(state, verdict.value)
        last = verdict.value.tolist()
    assert torch.equal(rule(x), rule.step(x, None)[0].value)


@pytest.mark.parametrize("kind", [list, lambda x: [{"w": row, "b": [row.numpy()]} for row in x], torch.clone])
def test_changing_a_value_in_place_does_not_move_the_next_start(kind: Any) -> None:
    x, rule = kind(draw_rows(6, 4)), ra.CC(tau=0.5)
    _, state = rule.step(x)
    wanted = rule.step(x, state)[0]
    verdict, again = rule.step(x)
    for leaf in [verdict.value] if isinstance(verdict.value, Tensor) else [verdict.value["w"], verdict.value["b"][0]]:
        leaf *= -0.1
    assert torch.equal(rule.step(x, again)[0].weights, wanted.weights)
    assert torch.equal(rule.step(x, again)[0].distances, wanted.distances)


def test_rules_without_memory_hand_the_state_through() -> None:
    marker = torch.zeros(3)
    for text in ("tq", "cm", "nnm >> krum"):
        verdict, state = ra.parse(text).step(draw_rows(5, 3).float(), marker)
        assert state is marker
        assert torch.equal(verdict.value, ra.parse(text)(draw_rows(5, 3).float()))


def test_a_chain_that_ends_in_cc_remembers() -> None:
    x = draw_rows(6, 3) + 20
    rule = ra.NNM(f=1) >> ra.CC(tau=1.0, f=1)
    first, state = rule.step(x, None)
    second, _ = rule.step(x, state)
    assert first.value.norm().item() == pytest.approx(1.0, rel=1e-2)
    assert second.value.norm().item() == pytest.approx(2.0, rel=1e-2)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_state_that_is_not_finite_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="the state must be finite"):
        ra.CC().step(draw_rows(5, 3), torch.tensor([0.0, bad, 0.0], dtype=torch.float64))


@pytest.mark.parametrize("parameters", [{"tau": 1e-300}, {"tau": 1e200}, {"tau": 1e-5, "iterations": 1000}])
def test_any_radius_will_do(parameters: Any) -> None:
    value = ra.CC(**parameters)(draw_rows(5, 3))
    assert bool(torch.isfinite(value).all())
    assert value.norm() <= parameters["tau"] * parameters.get("iterations", 1) * (1 + 1e-9)


# Widths


@pytest.mark.parametrize("sigma", [1e-320, 1e-200, 1e-8])
def test_mca_with_a_tiny_width_is_the_row_nearest_to_the_median(sigma: float) -> None:
    x = draw_rows(5, 3)
    median = torch.tensor(oracle.cm(x.tolist()), dtype=torch.float64)
    nearest = x[(x - median).norm(dim=1).argmin()]
    assert torch.allclose(ra.MCA(sigma=sigma)(x), nearest, atol=1e-9)


def test_mca_with_a_huge_width_is_the_mean() -> None:
    x = draw_rows(5, 3)
    assert torch.allclose(ra.MCA(sigma=1e200)(x), x.mean(0))


def test_mca_stays_where_half_of_the_rows_are() -> None:
    x = torch.zeros(5, 2)
    x[3], x[4] = 1.0, 9.0
    verdict = ra.MCA().explain(x)
    assert verdict.value.tolist() == [0, 0]
    assert verdict.weights.tolist() == pytest.approx([1 / 3] * 3 + [0, 0])


@pytest.mark.parametrize("smoothing", [1e-320, 1e-10, 0.1, 1e300])
def test_rfa_where_all_rows_are_at_the_origin_stays_there(smoothing: float) -> None:
    assert ra.RFA(smoothing=smoothing)(torch.zeros(4, 3)).tolist() == [0, 0, 0]


def test_tq_with_every_row_outside_tau_is_the_median_and_says_so_once() -> None:
    x = torch.eye(5, dtype=torch.float64) * 10
    verdict = ra.TQ(f=2).explain(x)
    assert torch.equal(verdict.value, torch.zeros(5, dtype=torch.float64))
    assert verdict.median_weight == 1
    assert verdict.rejected.all()
    assert str(verdict).count("so the value is the median") == 1


def test_tq_without_liars_is_the_mean() -> None:
    x = draw_rows(7, 3)
    assert torch.allclose(ra.TQ(f=0)(x), x.mean(0), atol=1e-12)
    assert ra.TQ(f=0).explain(x).tau == math.inf


def test_tau_is_told_in_the_size_of_the_rows() -> None:
    x = draw_rows(9, 3)
    ordinary, huge = ra.TQ(f=2).explain(x), ra.TQ(f=2).explain(x * 2.0**900)
    assert ordinary.tau is not None
    assert huge.tau == pytest.approx(ordinary.tau * 2.0**900)
    assert torch.allclose(huge.distances, ordinary.distances * 2.0**900)


# Client weights


def test_mean_weighs_clients_by_their_size() -> None:
    x = draw_rows(4, 3)
    sizes = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    value = ra.Mean(max_weight=1.0)(x, weights=sizes)
    assert torch.allclose(value, (sizes / 10) @ x)
    for kind in (sizes.tolist(), sizes.numpy(), [np.int64(1), 2, 3.0, "4"]):
        assert torch.equal(ra.Mean(max_weight=1.0)(x, weights=kind), value)


@given(
    sizes=st.lists(st.one_of(st.just(0), st.integers(0, 10**12), st.floats(0, 1e308)), min_size=1, max_size=12),
    most=st.floats(0.01, 1.5),
)
@example(sizes=[0, 4.5e307, 0.25], most=0.75)
@example(sizes=[1e-320, 1e308, 1e308, 3e-320], most=0.4)
def test_no_size_a_client_claims_gets_it_more_than_max_weight(sizes: list[Any], most: float) -> None:
    n = len(sizes)
    verdict = ra.Mean(f=0, max_weight=most).explain(draw_rows(n, 2), weights=sizes)
    limit = max(most, 1 / n)
    assert float(verdict.weights.max()) <= limit * (1 + 1e-6)
    assert float(verdict.weights.sum()) == pytest.approx(1)
    assert float(verdict.weights.min()) >= 0
    order = sorted(range(n), key=lambda i: sizes[i])
    shares = verdict.weights[order]
    assert bool((shares.diff() >= -1e-9).all())


@pytest.mark.parametrize("size", [math.nan, -1, math.inf, 10**400, -(10**400), None, "abc", [5], 1j])
def test_a_claim_that_is_no_size_breaks_its_row(size: Any) -> None:
    x = draw_rows(5, 3)
    verdict = ra.Mean(max_weight=1.0).explain(x, weights=[1, 1, size, 1, 1])
    assert torch.allclose(verdict.value, x[[0, 1, 3, 4]].mean(0))
    assert "is no size" in verdict.reasons[2]
    assert verdict.rejected[2]
    with pytest.raises(ra.QuorumError, match="is no size"):
        ra.Mean(f=1)(x, weights=[size] * 4 + [1])


def test_no_claim_of_a_size_fills_a_log() -> None:
    x = draw_rows(5, 3)
    for size in ("x" * 10**6, [0] * 10**5, 10**5000):
        assert len(ra.Mean().explain(x, weights=[1, size, 1, 1, 1]).reasons[1]) < 100
    with pytest.raises(TypeError) as error:
        ra.Mean()(x, weights="1" * 10**6)
    assert len(str(error.value)) < 200


def test_all_sizes_zero_is_the_plain_mean() -> None:
    x = draw_rows(4, 3)
    assert torch.allclose(ra.Mean()(x, weights=[0] * 4), x.mean(0))


def test_a_broken_row_without_weight_is_named() -> None:
    x = draw_rows(5, 3)
    x[1] = math.nan
    verdict = ra.Mean(max_weight=1.0).explain(x, weights=[1, 0, 1, 1, 1])
    assert verdict.reasons[1] == "not finite"
    assert bool(torch.isfinite(verdict.value).all())


@pytest.mark.parametrize(
    ("weights", "error", "words"),
    [
        ([1, 2], ValueError, "got 2 weights for 4 rows"),
        (5, TypeError, "must be 4 numbers, one per row, got int"),
        ("1234", TypeError, "must be 4 numbers, one per row, got str"),
        ({0: 1, 1: 1, 2: 1, 3: 1}, TypeError, "must be 4 numbers, one per row, got dict"),
        (torch.tensor(4.0), TypeError, "must be 4 numbers, one per row, got Tensor"),
    ],
)
def test_weights_that_are_none_are_refused(weights: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        ra.Mean()(draw_rows(4, 2), weights=weights)


def test_weights_go_with_rows_that_were_clipped() -> None:
    x = draw_rows(4, 3) * 5
    clipped = torch.tensor(oracle.clipping(x.tolist(), 1.0), dtype=torch.float64)
    value = (ra.Clipping() >> ra.Mean(max_weight=1.0))(x, weights=[1, 2, 3, 4])
    assert torch.allclose(value, torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64) @ clipped)


# The verdict


def test_the_verdict_prints_as_a_small_table() -> None:
    x = torch.zeros(5, 2)
    x[:3] = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    x[3], x[4] = 30.0, math.nan
    text = str(ra.TQ(f=2).explain(x))
    lines = text.splitlines()
    assert lines[0].startswith("tq(f=2): 5 rows, 2 not believed, tau ")
    assert lines[1].split() == ["row", "weight", "distance"]
    assert "from the centre, beyond tau" in lines[5]
    assert lines[6].split() == ["4", "0", "-", "not", "finite"]
    assert "the median of all rows" not in text, "after ten steps nothing is left of it"
    assert "the median of all rows" in str(ra.TQ(f=2, iterations=1).explain(x))


def test_rows_that_krum_leaves_are_not_chosen_and_not_rejected() -> None:
    verdict = ra.Krum(f=1).explain(draw_rows(5, 3))
    assert verdict.reasons.count("not chosen") == 4
    assert not verdict.rejected.any()


def test_huber_says_that_far_rows_are_drawn_in() -> None:
    x = draw_rows(9, 3)
    x[8] = 1e6
    verdict = ra.Huber(f=2).explain(x)
    assert verdict.reasons[8].endswith(": clipped to tau")
    assert not verdict.rejected.any()
    assert 0 < float(verdict.weights[8]) < 1e-3


def test_distances_to_the_largest_numbers_do_not_overflow() -> None:
    x = torch.ones(5, 3, dtype=torch.float64)
    x[3], x[4] = 1.7e308, -1.7e308
    verdict = ra.CM(f=2).explain(x)
    assert bool(torch.isfinite(verdict.distances).all())
    assert float(verdict.distances[3]) > 1e308


def test_with_a_flag_for_the_alarm_it_is_set_and_nothing_is_asked() -> None:
    flag = torch.zeros((), dtype=torch.bool)
    x = draw_rows(5, 3)
    aggregate(ra.TQ(), read(x), Request(alarm=flag))
    assert not flag
    x[4] = math.nan
    aggregate(ra.TQ(), read(x), Request(alarm=flag))
    assert flag
    assert bool(torch.isfinite(ra.TQ()(x)).all())


def test_the_example_of_the_front_page() -> None:
    x = torch.randn(20, 1000, generator=torch.Generator().manual_seed(0))
    x[14:] = 1e30
    x[19] = math.nan
    verdict = ra.TQ(f=6).explain(x)
    assert bool(torch.isfinite(verdict.value).all())
    assert set(range(14, 20)) <= set(verdict.not_believed)
    assert verdict.reasons[19] == "not finite"
    assert all("beyond tau" in verdict.reasons[i] for i in range(14, 19))
