"""Client weights: a client with k votes counts as k clients that send the same row, in every rule and every chain."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from torch import Tensor

import oracle
import robagg as ra
import test_every_rule
from robagg import Pull, Rule, Sketch, theory
from robagg._core.rule import stages
from robagg._core.votes import Votes, count_below_half, deal, find_limit
from test_every_rule import close, draw_rows, gap, is_random, order_of, spread_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* tolerates nobody with:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:.* was given no root:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:client weights change nothing:RuntimeWarning"),
]

EVERY = [text for text in test_every_rule.EVERY if all(stage.takes_weights for stage in ra.parse(text).stages)]
RULES = [text for text in test_every_rule.RULES if text in EVERY]
ROBUST = [text for text in test_every_rule.ROBUST if text in EVERY and text not in test_every_rule.ONE_LOOK]
every_rule = pytest.mark.parametrize("text", EVERY)
settled_rule = pytest.mark.parametrize("text", [text for text in EVERY if not is_random(ra.parse(text))])
F = st.one_of(st.none(), st.integers(0, 3), st.sampled_from([0.1, 0.25, 0.4]))
VOTES = st.lists(st.one_of(st.integers(0, 6), st.sampled_from([1, 10])), min_size=1, max_size=9)


def aggregate(rule: str | Rule, x: Any, weights: Any, seed: int = 0, max_weight: float | None = None) -> Any:
    return ra.parse(rule)(x, weights=weights, max_weight=max_weight, generator=torch.Generator().manual_seed(seed))


def least_gap(values: list[float]) -> float:
    """The smallest gap between any two neighbours: on copies it may be any two that decide."""
    return min((gap(values, k) for k in range(1, len(values))), default=math.inf)


def follow(rule: Rule, x: Tensor, votes: list[int], seed: int = 0) -> tuple[list[float], float]:
    """The plain oracle's value on copies of the rows, and the smallest margin by which anything was decided."""
    if min(votes) == max(votes):  # a short bucket counts like any other then
        return test_every_rule.follow(rule, x, seed)
    rows: Any = x.double().tolist()
    generator, sent, joins = torch.Generator().manual_seed(seed), votes, 1
    margins = [math.inf]
    first, shares = rows, [[float(i == j) for j in range(len(rows))] for i in range(len(rows))]

    def count(stage: Any) -> int:
        f = getattr(stage, "f", 0)
        return oracle.heaviest(votes, oracle.tolerated(sent, f, joins), f if isinstance(f, float) else 0.0)

    for mixer in rule.mixers:
        match mixer.name():
            case "nnm":
                margins += [least_gap([oracle.squared(a, b) for b in rows]) for a in rows]
                near = [oracle.nearest_votes(rows, votes, count(mixer), i) for i in range(len(rows))]
                shares = [oracle.weighted_mean(shares, taken) for taken in near]
                rows = oracle.weighted_nnm(rows, votes, count(mixer))
            case "bucketing":
                order = order_of(mixer, len(rows), generator)
                shares, _ = oracle.weighted_bucketing(shares, votes, order, mixer.s)
                rows, votes = oracle.weighted_bucketing(rows, votes, order, mixer.s)
                joins *= mixer.s
            case "clipping" | "arc" | "medianclipping":
                many, before = oracle.copies(rows, votes), rows
                longest = max(map(oracle.length, test_every_rule.clip(mixer, many, count(mixer))))
                rows = oracle.clipping(rows, longest)
                scales = [max(map(abs, new)) / max(map(abs, old)) for new, old in zip(rows, before, strict=True)]
                shares = [[scale * share for share in row] for scale, row in zip(scales, shares, strict=True)]
            case unknown:
                raise AssertionError(f"tests/oracle.py must define {unknown} with votes too")
    core, f, least = rule.core, count(rule.core), 0.0
    if getattr(core, "floor", False) and any(mixer.name() == "nnm" for mixer in rule.mixers):
        lightest = sum(sorted(sent)[: -(-len(sent) // 2)])
        asked = [part for stage in rule.stages if isinstance(part := getattr(stage, "f", 0), float)]
        outnumbered = any(lightest <= math.ceil(part * sum(sent)) for part in asked)
        least = oracle.floor(first, shares, sent, oracle.cm(oracle.copies(first, sent)) if outnumbered else None)
    value, near = follow_core(core, rows, votes, f, oracle.copies(first, sent), least)
    return value, min([near, *margins])


def follow_core(
    core: Any, rows: Any, votes: list[int], f: int, sent: Any, least: float = 0.0
) -> tuple[list[float], float]:
    """The same of a rule alone, for rows behind its pre-aggregators."""
    margins, total = [math.inf], sum(votes)
    many = oracle.copies(rows, votes)
    voting = [row for row, k in zip(rows, votes, strict=True) if k]
    match core.name():
        case "mean":
            value = oracle.mean(many)
        case "cm":
            value = oracle.cm(many)
        case "tm":
            value = oracle.tm(many, f)
        case "krum" | "multikrum":
            scores = [score for score in oracle.weighted_krum_scores(rows, votes, f) if score < math.inf]
            margins += [least_gap([oracle.squared(a, b) for b in voting]) for a in voting]
            margins.append(gap(scores, 1) if core.name() == "krum" else least_gap(scores))
            value = (oracle.krum if core.name() == "krum" else oracle.multikrum)(many, f)
        case "onemean":
            scores = [score for score in oracle.weighted_krum_scores(rows, votes, f) if score < math.inf]
            margins += [least_gap([oracle.squared(a, b) for b in voting]) for a in voting]
            margins.append(gap(scores, 1))
            value, _ = oracle.one_mean(many, f)
        case "onecentre":
            margins += [least_gap([oracle.squared(a, b) for b in voting]) for a in voting]
            reach = [sorted(oracle.squared(a, b) for b in many)[total - f - 1] for a in voting]
            margins.append(gap(reach, 1))
            value, _ = oracle.one_centre(many, f)
        case "cge":
            origin = [0.0] * len(rows[0])
            margins.append(least_gap([oracle.squared(row, origin) for row in voting]))
            value, _ = oracle.nearest_to(many, f, origin)
        case "monna":
            margins.append(least_gap([oracle.squared(row, oracle.cm(many)) for row in voting]))
            value, _ = oracle.nearest_to(many, f, oracle.cm(many))
        case "fltrust":
            value, near = oracle.fltrust(many, oracle.cm(many))
            margins.append(near)
        case "signguard":
            value, near = oracle.signguard(many, core.lower, core.upper)
            margins.append(near)
        case "ctma":
            base, near = follow_core(core.rule, rows, votes, f, sent, least)
            margins += [near, least_gap([oracle.squared(row, base) for row in voting])]
            value, _ = oracle.nearest_to(many, f, base)
        case "dnc":
            along, near = oracle.stand_out(many)
            first = [sum(votes[:i]) for i, k in enumerate(votes) if k]
            margins += [near, least_gap([along[i] for i in first])]
            value, _ = oracle.dnc(many, f, core.drop)
        case "meamed":
            value, _ = oracle.meamed(many, f)
            middles = zip(oracle.cm(many), zip(*voting, strict=True), strict=True)
            margins += [least_gap([abs(x - m) for x in column]) for m, column in middles]
        case "caf" | "spectralfilter" | "scaledfilter":
            n = len(rows)
            standout, counts = getattr(core, "standout", 0.0), [k * n / total for k in votes]
            both = oracle.scaled(rows, f * n / total, sent, counts) if core.scaled else None
            value, near = oracle.caf(rows, f * n / total, standout, counts, both)
            margins.append(near)
            if core.scaled:  # of rows that coincide the unit is a part of the farthest one's, about whichever centre
                farthest = max(oracle.squared(a, b) for a in rows for b in rows)
                margins.append(oracle.pair_variance(rows, counts, f * n / total) - 1e-10 * farthest)
        case "rfa":
            value = oracle.rfa(many, core.iterations, core.smoothing)
        case "huber":
            value = oracle.huber(many, f, core.iterations, least)
            margins.append(spread_of(many, least))
        case "cc":
            value = oracle.cc(many, core.tau, core.iterations)
        case "mca":
            value = oracle.mca(many, core.sigma, core.iterations)
            if core.sigma is not None and len(voting) > 1:
                first, second, *_ = sorted(oracle.squared(row, oracle.cm(many)) / 2 / core.sigma**2 for row in voting)
                margins.append(math.inf if first < 0.4 or second - first > 40 else 0.0)
        case "tq":
            value, near = oracle.tq(many, f, core.iterations, least)
            margins += [near, spread_of(many, least)]
        case unknown:
            raise AssertionError(f"tests/oracle.py must define {unknown} with votes too")
    return value, min(margins)


def free(votes: list[int], f: Any) -> float:
    """A limit that caps none of the votes, where f allows it."""
    most = max(max(votes) / sum(votes) * 1.001, 1 / len(votes))
    assume(not isinstance(f, int) or 2 * f * most < 1)
    assume(not isinstance(f, int) or len(votes) >= 2 * f + 1)
    return most


def check_definition(text: str, votes: list[int], d: int, seed: int, f: Any) -> None:
    assume(any(votes))
    most, rule = free(votes, f), ra.parse(text, f=f)
    x = draw_rows(len(votes), d, seed)
    x[: len(votes) // 3] += 5
    wanted, decided = follow(rule, x, votes, seed)
    assume(decided > 1e-4)
    assert close(aggregate(rule, x, votes, seed, most), wanted, 1e-8)
    farthest = float((x - x.median(0).values).square().sum(1).max())
    if "fltrust" in text:
        return  # it scales rows by lengths, which float32 does not know of rows much shorter than the farthest
    if (sigma := getattr(rule.core, "sigma", None)) is None or farthest <= 100 * sigma**2:
        wanted, decided = follow(rule, x.float(), votes, seed)
        assume(decided > 1e-3)
        assert close(aggregate(rule, x.float(), votes, seed, most), wanted, 2e-4)


@every_rule
@settings(max_examples=6)
@given(votes=VOTES, d=st.integers(1, 6), seed=st.integers(0, 10**6), f=F)
@example(votes=[2, 0, 1, 1], d=1, seed=0, f=None)  # signguard: no row of usual length
def test_a_client_with_k_votes_counts_as_k_clients(text: str, votes: list[int], d: int, seed: int, f: Any) -> None:
    check_definition(text, votes, d, seed, f)


@pytest.mark.slow
@every_rule
@settings(settings.get_profile("long"))
@given(votes=VOTES, d=st.integers(1, 12), seed=st.integers(0, 10**6), f=F)
def test_a_client_with_k_votes_counts_as_k_clients_at_length(
    text: str, votes: list[int], d: int, seed: int, f: Any
) -> None:
    check_definition(text, votes, d, seed, f)


@pytest.mark.parametrize("seed", range(5))
def test_the_oracles_weighted_loops_are_the_plain_ones_on_copies(seed: int) -> None:
    rows, votes, f = draw_rows(6, 3, seed).tolist(), [3, 1, 4, 0, 2, 5], 6
    many = oracle.copies(rows, votes)
    first = [sum(votes[:i]) for i in range(6)]
    plain, mixed = oracle.krum_scores(many, f), oracle.nnm(many, f)
    scores, means = oracle.weighted_krum_scores(rows, votes, f), oracle.weighted_nnm(rows, votes, f)
    for i in (0, 1, 2, 4, 5):
        assert scores[i] == pytest.approx(plain[first[i]])
        assert means[i] == pytest.approx(mixed[first[i]])
    value, _ = oracle.caf(rows, f * 6 / 15, votes=[k * 6 / 15 for k in votes])
    assert value == pytest.approx(oracle.caf(many, f)[0], abs=1e-6)


@every_rule
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_equal_weights_give_what_no_weights_give_to_the_last_bit(text: str, dtype: torch.dtype) -> None:
    x = draw_rows(9, 40, seed=3, dtype=dtype)
    plain = aggregate(text, x, None)
    for weights in ([7] * 9, [0] * 9, torch.full((9,), 1e-3), [math.pi] * 9):
        assert torch.equal(aggregate(text, x, weights), plain)
    assert torch.equal(aggregate(text, x, [*range(9)], max_weight=1e-9), plain)


@settled_rule
@settings(max_examples=4)
@given(votes=VOTES, seed=st.integers(0, 10**6))
def test_the_order_of_the_clients_does_not_matter(text: str, votes: list[int], seed: int) -> None:
    assume(any(votes))
    rule, x = ra.parse(text), draw_rows(len(votes), 3, seed)
    assume(follow(rule, x, votes, seed)[1] > 1e-6)
    order = torch.randperm(len(votes), generator=torch.Generator().manual_seed(seed))
    most = free(votes, None)
    weights = torch.tensor(votes)
    assert close(aggregate(rule, x[order], weights[order], 0, most), aggregate(rule, x, weights, 0, most), 1e-9)


@every_rule
def test_kind_and_dtype_come_back_with_weights_too(text: str) -> None:
    x, weights = draw_rows(9, 8, seed=4), [1, 2, 3, 4, 5, 1, 2, 3, 30]
    value = aggregate(text, x, weights, 0, 0.2)
    rows = [{"a": row[:4].reshape(2, 2).clone(), "b": [row[4:].numpy()]} for row in x]
    nested = aggregate(text, rows, weights, 0, 0.2)
    assert close(torch.cat([nested["a"].reshape(-1), torch.as_tensor(nested["b"][0])]), value, 1e-9)
    assert close(aggregate(text, x.numpy(), weights, 0, 0.2), value, 1e-12)
    half = aggregate(text, x.half(), weights, 0, 0.2)
    assert half.dtype == torch.float16 and close(half, aggregate(text, x.half().float(), weights, 0, 0.2), 1e-2)
    verdict, _ = ra.parse(text).step(x, weights=weights, max_weight=0.2, generator=torch.Generator().manual_seed(0))
    assert torch.equal(verdict.value, value)
    assert verdict.shares is not None and float(verdict.shares.sum()) == pytest.approx(1)
    assert "client weights: none counts more than" in str(verdict)


@every_rule
@settings(max_examples=3)
@given(seed=st.integers(0, 10**6), broken=st.sets(st.integers(0, 8), max_size=2))
def test_broken_clients_leave_their_part_to_the_others(text: str, seed: int, broken: set[int]) -> None:
    x, weights = draw_rows(9, 4, seed), [3, 1, 4, 1, 5, 2, 2, 6, 5]
    rest = [i for i in range(9) if i not in broken]
    x[sorted(broken), seed % 4] = math.nan
    rule = ra.parse(text, f=2)
    if follow(rule, x[rest], [weights[i] for i in rest], seed)[1] < 1e-6:
        return
    wanted = aggregate(rule, x[rest], [weights[i] for i in rest], seed, 0.24)
    assert close(aggregate(rule, x, weights, seed, 0.24), wanted, 1e-9)
    assert close(
        aggregate(rule, x, [math.nan if i in broken else w for i, w in enumerate(weights)], seed, 0.24), wanted, 1e-9
    )


def test_too_many_broken_clients_are_no_quorum() -> None:
    x, weights = draw_rows(9, 4), [3, 1, 4, 1, 5, 2, 2, 6, 5]
    x[:6] = math.inf
    with pytest.raises(ra.QuorumError, match="got 3 sound and 6 broken of 9"):
        ra.TQ(f=2)(x, weights=weights)


@pytest.mark.parametrize("text", [*ROBUST, *(f"nnm >> {rule}" for rule in ROBUST)])
@pytest.mark.parametrize("claim", [1, 10**12])
@settings(max_examples=5)
@given(seed=st.integers(0, 10**6), f=st.integers(1, 4), far=st.sampled_from([1e3, -1e10, 1e30]))
def test_liars_who_claim_everything_cannot_move_a_robust_rule(
    text: str, claim: int, seed: int, f: int, far: float
) -> None:
    n = 20
    x = draw_rows(n, 10, seed, torch.float32) + 2
    honest = x[: n - f].double()
    x[n - f :] = far * torch.linspace(0.5, 1, f)[:, None]
    weights = [*range(1, n - f + 1), *[claim] * f]
    verdict = ra.parse(text, f=f).explain(x, weights=weights)
    assert verdict.shares is not None
    held = float(verdict.shares[n - f :].sum())
    assert held < (f / n + 0.5) / 2 + 1e-6
    assert float((verdict.value.double() - honest.mean(0)).norm()) <= 6 * float(
        (honest - honest.mean(0)).norm(dim=1).max()
    )


@pytest.mark.parametrize("text", [*ROBUST, *(f"nnm >> {rule}" for rule in ROBUST)])
@pytest.mark.parametrize("far", [1e3, 1e10, 1e30])
def test_many_light_liars_within_a_share_of_weight_cannot_move_a_robust_rule(text: str, far: float) -> None:
    """Eight of fourteen clients, with a fifth of the weight: by number they have every median."""
    x = draw_rows(14, 30, 5, torch.float32) + 2
    weights = [16, 14, 13, 13, 12, 12] + [2.5] * 8
    honest = x[:6].double()
    x[6:] = far
    value = ra.parse(text, f=0.2)(x, weights=weights, max_weight=0.2)
    assert float((value.double() - honest.mean(0)).norm()) <= 6 * float((honest - honest.mean(0)).norm(dim=1).max())


# The guarantee


def worst(rule: Rule, votes: list[int], byzantine: list[int], most: float, seed: int, steps: int) -> float:
    """The largest |R - mean|^2 / Var that a search finds, mean and variance weighted and of the honest clients."""
    generator = torch.Generator().manual_seed(seed)
    honest = torch.tensor([i not in byzantine for i in range(len(votes))])
    share = torch.tensor(votes, dtype=torch.float64)[honest]
    share = share / share.sum()

    def ratio(x: Tensor) -> float:
        centre = share @ x[honest]
        spread = float(share @ (x[honest] - centre).square().sum(1))
        value = rule(x, weights=votes, max_weight=most)
        return float((value - centre).square().sum()) / spread if spread > 1e-12 else 0.0

    x = torch.randn(len(votes), 2, generator=generator, dtype=torch.float64)
    found = ratio(x)
    for step in range(steps):
        move = torch.randn(x.shape, generator=generator, dtype=torch.float64) * 4.0 ** -(step % 5)
        rows = torch.randint(0, 2, (len(votes), 1), generator=generator)
        if (other := ratio(x + move * rows)) > found:
            x, found = x + move * rows, other
    return found


@pytest.mark.parametrize("text", ["cm", "tm", "krum", "rfa(iterations=200, smoothing=1e-6)"])
@pytest.mark.parametrize("seed", range(3))
def test_no_search_finds_a_stack_beyond_the_weighted_guarantee(text: str, seed: int) -> None:
    votes, byzantine = [5, 1, 2, 4, 3, 5, 2, 1, 3, 2, 4, 3], [[0, 5], [3, 10], [1, 7]][seed]
    part = sum(votes[i] for i in byzantine) / sum(votes)
    rule = ra.parse(text, f=2)
    kappa = {"cm": theory.kappa_cm, "rfa": theory.kappa_cm, "tm": theory.kappa_tm, "krum": theory.kappa_krum}
    bound = kappa[rule.name()](part)
    found = worst(rule, votes, byzantine, 0.24, seed, 400)
    assert 0.1 < found <= bound * (1 + 1e-6)


# Votes


@given(
    sizes=st.lists(
        st.one_of(st.just(0.0), st.integers(0, 10**12).map(float), st.floats(0, 1e308)), min_size=1, max_size=12
    ),
    most=st.floats(0.01, 1.5),
)
@example(sizes=[0.0, 4.5e307, 0.25], most=0.75)
def test_votes_are_whole_and_none_is_above_its_limit(sizes: list[float], most: float) -> None:
    votes = deal(sizes, most)
    total = sum(votes)
    assert 0 < total < 2**31 and all(isinstance(k, int) and k >= 0 for k in votes)
    assert max(votes) <= max(most, 1 / len(sizes)) * total * (1 + 1e-6)
    order = sorted(range(len(sizes)), key=lambda i: sizes[i])
    assert all(votes[a] <= votes[b] for a, b in pairwise(order))


@given(votes=st.lists(st.integers(0, 50), min_size=1, max_size=12), data=st.data())
def test_f_for_the_rest_is_never_less_than_f_less_the_broken(votes: list[int], data: Any) -> None:
    assume(any(votes))
    f = data.draw(st.integers(0, count_below_half(votes)))
    broken = data.draw(st.sets(st.integers(0, len(votes) - 1), max_size=len(votes) - 1))
    kept = tuple(k for i, k in enumerate(votes) if i not in broken)
    assume(any(kept))
    left = Votes(tuple(votes), kept).tolerance_left(f, len(broken))
    if left is None:
        assert len(broken) > f
    else:
        assert left >= f - len(broken) and 2 * sum(sorted(kept)[len(kept) - left :]) < sum(kept)


@given(n=st.integers(1, 60), share=st.floats(0, 0.49), data=st.data())
def test_without_a_limit_of_ones_own_f_clients_hold_less_than_half(n: int, share: float, data: Any) -> None:
    f = data.draw(st.integers(0, (n - 1) // 2))
    limit = max(find_limit([f], n, None), 1 / n)
    assert f == 0 or f * limit <= (f / n + 0.5) / 2 + 1e-12
    votes = deal([1e12] * f + [1.0] * (n - f), limit)
    assert count_below_half(votes) >= f
    assert find_limit([share, None], n, 0.1) <= 0.1
    assert n < 3 or count_below_half(deal([1e12, *range(1, n)], find_limit([None], n, None))) >= 1


@pytest.mark.parametrize(
    ("text", "f", "weights", "most", "in_force"),
    [
        ("tq", 2, [30, 1, 1, 1, 5, 5, 9, 8, 7, 3, 20, 10], None, 2),
        ("tq", None, [3, 3, 1, 1, 1, 1], 1.0, 1),
        ("tq", 0.4, [2, 2, 2, 1, 1, 1, 1], 1.0, 2),
        ("tq", 0.4, [3, 3, 1, 1, 1, 1], 1.0, 1),
        ("tm", 0.2, [1, 1, 1, 1.5], 1.0, 1),
        ("bucketing >> tq", 4, [1] * 9 + [1.5], None, 2),
        ("krum", None, [5, 1, 1], 1.0, 0),
    ],
)
def test_f_counts_the_heaviest_clients_and_a_share_is_of_weight(
    text: str, f: Any, weights: list[float], most: float | None, in_force: int
) -> None:
    verdict = ra.parse(text, f=f).explain(draw_rows(len(weights), 3), weights=weights, max_weight=most)
    assert verdict.f == in_force
    assert bool(verdict.unprotected) == (in_force == 0)


def test_a_share_of_weight_covers_any_clients_that_hold_it() -> None:
    """Two of .3 hold more than half, so one is in force; yet .3 and .1 hold less than the share of .45 asked for."""
    x = draw_rows(6, 1)
    x[[0, 2]] = 1e9
    assert float(ra.TM(f=0.45)(x, weights=[3, 3, 1, 1, 1, 1], max_weight=0.3).abs()) < 10


@pytest.mark.parametrize(("n", "f", "s"), [(12, 2, 2), (20, 3, 2), (30, 3, 3), (20, 2, 4)])
@pytest.mark.parametrize("claim", [1, 10, 10**12])
def test_no_claims_lower_the_f_in_force_behind_bucketing(n: int, f: int, s: int, claim: int) -> None:
    """Each Byzantine client may get into a bucket of its own, so that f buckets must be tolerated."""
    x = draw_rows(n, 10, n, torch.float32) + 2
    honest, x[:f] = x[f:].double(), 1e6
    rule = ra.Bucketing(s=s) >> ra.TM(f=f)
    for seed in range(8):
        generator = torch.Generator().manual_seed(seed)
        verdict = rule.explain(x, weights=[claim] * f + [*range(1, n - f + 1)], generator=generator)
        assert verdict.f == rule.explain(x).f == f
        assert float((verdict.value.double() - honest.mean(0)).norm()) <= 6 * float(
            (honest - honest.mean(0)).norm(dim=1).max()
        )


# What must be refused


@pytest.mark.parametrize("text", [*RULES, "nnm >> tq"])
def test_a_limit_by_which_f_clients_may_hold_half_is_refused(text: str) -> None:
    rule, x = ra.parse(text, f=2), draw_rows(9, 3)
    if rule.tolerates or rule.mixers:
        with pytest.raises(ValueError, match=r"max_weight must be below 0.25 for .*\(f=2\).*got 0.25"):
            rule(x, weights=[*range(9)], max_weight=0.25)
    rule(x, weights=[*range(9)], max_weight=0.249)
    for bad in (0, -1, math.nan, math.inf, "x", True):
        with pytest.raises(ValueError, match="max_weight must be a share > 0"):
            rule(x, weights=[*range(9)], max_weight=bad)
    with pytest.raises(ValueError, match=r"max_weight must come with weights.*max_weight=0.2 alone"):
        rule(x, max_weight=0.2)


@dataclass(frozen=True)
class Half(ra.TQ):
    """TQ with half of the pull, which nobody taught votes."""

    def pull(self, sketch: Sketch, c: Tensor, squared: Tensor) -> Pull:
        return Pull(torch.full_like(squared, 0.5 / sketch.n))


@dataclass(frozen=True)
class Renamed(ra.TQ):
    """TQ by another name: it decides nothing of its own."""

    iterations: int = 3


@dataclass(frozen=True)
class Learned(Half):
    """The same, by votes."""

    takes_weights: ClassVar[bool] = True

    def pull(self, sketch: Sketch, c: Tensor, squared: Tensor) -> Pull:
        return Pull(sketch.count(torch.full_like(squared, 0.5)) / sketch.total)


@pytest.mark.parametrize(("text", "most"), [("mean", None), ("tq", 0.1)])
def test_a_limit_that_makes_all_weights_equal_is_told(text: str, most: float | None) -> None:
    with pytest.warns(RuntimeWarning, match=r"change nothing: .* 9 clients .* above 0.1111"):
        aggregate(text, draw_rows(9, 3), [*range(9)], max_weight=most)


def test_a_rule_of_ones_own_that_knows_no_votes_says_so() -> None:
    x, weights = draw_rows(5, 3), [1, 2, 3, 4, 5]
    for rule in (Half(f=1), ra.NNM(f=1) >> Half(f=1)):
        with pytest.raises(ValueError, match=r"half\(f=1\) must count clients by their votes to take weights"):
            rule(x, weights=weights)
    assert torch.equal(Renamed(f=1)(x, weights=weights), ra.TQ(f=1, iterations=3)(x, weights=weights))
    many = torch.repeat_interleave(x, torch.tensor(weights), dim=0)
    assert close(Learned(f=0)(x, weights=weights, max_weight=1.0), Learned(f=0)(many), 1e-9)


def test_every_rule_and_pre_aggregator_of_ours_takes_weights_but_the_searches() -> None:
    """Copies of a client leave it open which rows MDA and SMEA keep, and Bulyan would pick them one by one."""
    ours = {name: cls for name, cls in stages.classes().items() if cls.__module__.startswith("robagg.")}
    assert [name for name, cls in ours.items() if not cls.takes_weights] == ["bulyan", "foolsgold", "mda", "smea"]
    with pytest.raises(ValueError, match="mda must count clients by their votes"):
        ra.MDA()(draw_rows(5, 3), weights=[1, 2, 3, 4, 5])
