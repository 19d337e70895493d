"""Hundreds and thousands of rows: the passes for them, and distances of projected rows."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

import robagg
from robagg import Verdict, parse
from robagg._core import filtering
from robagg._core.projection import Projection, count_numbers
from robagg.kernels import cpu, cpu_many, many, reference

N = cpu_many.MOST + 1
CHAINS = [
    "krum",
    "multikrum",
    "tq",
    "rfa",
    "mca",
    "caf",
    "nnm >> krum",
    "nnm >> tq",
    "bucketing >> tq",
    "clipping >> rfa",
]
DISTANCES = ["exact", "projected"]
compiled = pytest.mark.skipif(not cpu_many.available(), reason="the C kernels are not built")


def draw(n: int, d: int, seed: int = 0) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def explain(text: str, x: Tensor, distances: str, f: int = 150) -> Verdict:
    return parse(text, f=f).explain(x, distances=distances, generator=seeded())


@compiled
@pytest.mark.parametrize("isa", cpu.isas())
@pytest.mark.parametrize("wide", [False, True])
def test_passes_over_many_rows_give_what_the_reference_gives(isa: str, wide: bool) -> None:
    dtype = torch.float64 if wide else torch.float32
    x, close = draw(N, 140).to(dtype), 1e-12 if wide else 1e-5
    x[:, :7], x[3:300, 11] = 0, 1.5
    for more in ({}, {"votes": torch.arange(N) % 3}, {"mix": torch.rand(N, N, dtype=torch.float64) / N}):
        got = cpu.sketch(x, anchors=[None, x[4] * 2], compute=dtype, isa=isa, **more)
        want = reference.sketch(x, anchors=[None, x[4] * 2], compute=dtype, **more)
        for a, b in zip(got[:3], want[:3], strict=True):
            torch.testing.assert_close(a, b, rtol=close, atol=close * float(want.gram.diagonal().max()))
        assert torch.equal(got.gram, got.gram.T)
    for lo, hi in ((N // 2, N // 2 + 1), (N // 4, N - N // 4), (0, N), (5, 8), (N - 1, N)):
        value, _ = cpu.trim(x, lo, hi, compute=dtype, isa=isa)
        torch.testing.assert_close(value, reference.trim(x, lo, hi, compute=dtype)[0], rtol=close, atol=close)
        counts = cpu.shares(x, lo, hi, compute=dtype, isa=isa)
        torch.testing.assert_close(counts, reference.shares(x, lo, hi, compute=dtype), rtol=1e-4, atol=1e-4)


@compiled
@pytest.mark.parametrize("isa", cpu.isas())
def test_projections_and_nearest_rows_are_those_of_the_reference(isa: str) -> None:
    x, signs = draw(9, 2500), draw(1, 2500)[0].sign()
    shifts = torch.tensor([0, 1023, 511])
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        out = [torch.zeros(9, 1024, dtype=torch.float64) for _ in range(2)]
        cpu_many.project(list(x.to(dtype)), signs.double(), shifts, out[0], isa=isa)
        many.project(x.to(dtype), signs.double(), shifts, out[1])
        torch.testing.assert_close(out[0], out[1], rtol=1e-12, atol=1e-12)
    y = draw(N, 40).double()
    y[5:60] = y[5]
    gram = cpu_many.multiply(y, anchors=[None], compute=torch.float64, isa=isa)
    squared = (gram.diagonal()[:N, None] + gram.diagonal()[:N] - 2 * gram[:N, :N]).clamp(min=0)
    order = squared.masked_fill(torch.eye(N, dtype=torch.bool), -1).sort(dim=1, stable=True)
    for count in (1, 30, N - 100, N):
        sums = order.values[:, :count].clamp(min=0).sum(dim=1)
        torch.testing.assert_close(cpu_many.sum_nearest(gram, N, count, isa=isa), sums, rtol=1e-12, atol=1e-12)
        means = torch.zeros(N, N + 1, dtype=torch.float64).scatter(1, order.indices[:, :count], 1 / count)
        assert torch.equal(cpu_many.nearest_means(gram, N, count, isa=isa), means)


def test_projected_squared_distances_deviate_as_the_verdict_says() -> None:
    n, d = 2, 20_000
    x, k = draw(n, d), 1024
    true = float((x[0] - x[1]).square().sum())
    found = torch.stack([Projection(seed, k).apply([x], torch.float64) for seed in range(60)])
    squared = (found[:, 0] - found[:, 1]).square().sum(dim=1) / true
    assert abs(float(squared.mean()) - 1) < 4 * math.sqrt(2 / k / 60)
    assert 0.7 < float(squared.std()) / Projection(0, k).deviation < 1.3
    note = explain("krum", draw(N, 20_000), "auto").note
    assert note == "Rows were projected: squared distances have a standard deviation of 2.2%."
    assert explain("krum", draw(N, 9_000), "auto").note == explain("cm", draw(N, 20_000), "projected").note == ""


@pytest.mark.parametrize("text", CHAINS)
def test_projected_distances_reject_whom_exact_ones_reject(text: str) -> None:
    x = draw(N, 5_000)
    x[:150] += 3
    exact, projected = explain(text, x, "exact"), explain(text, x, "projected")
    honest = x[150:].mean(dim=0)
    error = [float((v.value - honest).norm()) for v in (exact, projected)]
    assert error[1] <= 1.1 * error[0] + 2
    if text in ("tq", "caf", "nnm >> krum"):
        assert float(projected.weights[:150].sum()) < 0.01


def test_calls_with_equal_generators_are_equal_and_those_without_draw_anew() -> None:
    x = draw(N, 20_000)
    rule = parse("multikrum", f=150)
    a, b = (rule(x, generator=seeded(7)) for _ in range(2))
    assert torch.equal(a, b)
    assert not torch.equal(a, rule(x, generator=seeded(8)))
    assert not torch.equal(rule(x), rule(x))
    leaves = [{"w": row[:12_000].reshape(3, 4000), "b": row[12_000:]} for row in x]
    assert float((torch.cat([part.flatten() for part in rule(leaves, generator=seeded(7)).values()]) - a).norm()) < 9


def test_fewer_rows_than_512_are_never_projected_unless_asked() -> None:
    x = draw(100, 20_000)
    rule = parse("multikrum", f=30)
    assert rule.explain(x).note == "" and torch.equal(rule(x), rule(x))
    assert "2.2%" in rule.explain(x, distances="projected").note
    with pytest.raises(ValueError, match="distances must be one of auto, exact, projected, got 'near'"):
        rule(x, distances="near")


def test_weight_where_a_fixed_projection_is_blind_does_not_hide_a_row() -> None:
    """Whoever knew one draw could spread a huge row so that its projection vanishes; the next draw sees all of it."""
    n, d, f = N, 20_000, 150
    k = count_numbers(n)
    x = draw(n, d)
    signs, shifts = torch.empty(d), []
    for _, columns, sign, shift in Projection(7, k)._draw([d]):
        signs[columns] = sign
        shifts += shift.tolist()
    column = torch.arange(d)
    place = (column % k + torch.tensor(shifts)[column // k]) % k
    pair = [torch.nonzero(place == b).flatten()[:2] for b in range(k)]
    blind = torch.zeros(d)
    for first, second in pair:
        blind[first], blind[second] = signs[first], -signs[second]
    assert float(Projection(7, k).apply([blind[None]], torch.float32).norm()) < 1e-3
    x[:f] = 100 * blind
    assert float(Projection(7, k).apply([x], torch.float32)[0].norm()) < 1
    verdict = parse("tq", f=f).explain(x, distances="projected")
    assert bool(verdict.rejected[:f].all()) and float(verdict.weights[:f].sum()) == 0


@pytest.mark.parametrize("distances", DISTANCES)
@pytest.mark.parametrize("text", ["tq", "nnm >> krum", "caf", "scaledfilter"])
def test_broken_and_huge_rows_are_borne_by_many(text: str, distances: str) -> None:
    x = draw(N + 2, 4_500)
    x[3, 5], x[4] = math.nan, 3e38
    verdict = explain(text, x, "exact" if text == "scaledfilter" else distances)
    assert verdict.reasons[3] == "not finite" and bool(torch.isfinite(verdict.value).all())
    assert float(verdict.weights[3]) == 0 and float(verdict.value.norm()) < 100


@pytest.mark.parametrize("attack", ["none", "together", "far"])
@pytest.mark.parametrize("standout", [0.0, 3.0])
def test_power_steps_filter_as_the_exact_loop_does(attack: str, standout: float) -> None:
    n, f = 200, 60
    x = draw(n, 500).double()
    honest = x[f:].mean(dim=0)
    x[:f] = {"none": x[:f], "together": honest - 1, "far": 50 * x[:f]}[attack]
    y = x - x.median(dim=0).values
    gram, votes = y @ y.T, torch.ones(n, dtype=torch.float64)
    level = gram.new_tensor(float((x[f:] - honest).square().sum() / (n - f))) * standout / (n - 1)
    steps = 2 * f + 10
    got, want = (way(gram, votes, f, level, steps) for way in (filtering.weigh_down_many, filtering.weigh_down))
    values = [(c / c.sum()) @ x for c in (got, want)]
    size = float((x[f:] - honest).norm(dim=1).mean())
    # Of steps whose largest variances are nearly the same either may be the best: which, is up to rounding.
    assert float((values[0] - values[1]).norm()) < 0.03 * size


def test_distances_in_units_of_each_coordinate_are_exact_and_never_projected() -> None:
    x, f = draw(N, 20_000) * torch.logspace(-2, 0, 20_000), 50
    honest = x[f:].mean(dim=0)
    x[:f] = honest + 0.5 * x[f:].var(dim=0).mean().sqrt()
    for text in ("scaledfilter", "ctma(base='scaledfilter')"):
        with pytest.raises(ValueError, match=r"distances must be auto or exact for .*, got 'projected'"):
            explain(text, x, "projected", f)
    exact, auto = explain("scaledfilter", x, "exact", f), explain("scaledfilter", x, "auto", f)
    assert auto.note == "" and torch.equal(auto.value, exact.value)
    assert float(exact.weights[:f].sum()) < 0.01 and not exact.rejected[f:].any()
    plain = explain("spectralfilter", x, "exact", f)
    assert float((exact.value - honest).norm()) < float((plain.value - honest).norm())


def test_the_public_call_names_the_choice() -> None:
    assert "distances" in str(robagg.Rule.__call__.__doc__)
