"""The filters: whom they weigh down, when they stop, and what the verdict says of it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from robagg import CAF, NNM, Rule, ScaledFilter, SpectralFilter


def draw(n: int, d: int = 1000, seed: int = 0) -> Tensor:
    return torch.randn(n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def deviate(rule: Rule, x: Tensor, h: int) -> float:
    """|R(x) - honest mean|^2 in honest variances."""
    centre = x[:h].mean(dim=0)
    return float((rule(x) - centre).square().sum() / (x[:h] - centre).square().sum(dim=1).mean())


@pytest.mark.parametrize("n", [5, 8, 12, 20, 40])
def test_where_no_direction_stands_out_the_value_is_the_mean(n: int) -> None:
    rule = SpectralFilter(f=n // 4)
    for seed in range(10):
        x = draw(n, seed=seed)
        torch.testing.assert_close(rule(x), x.mean(dim=0))
        lengths = 0.5 + torch.rand(n, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        assert not rule.explain(x * lengths).rejected.any()


def test_caf_takes_weight_though_nothing_stands_out() -> None:
    lengths = torch.linspace(0.5, 1.5, 20, dtype=torch.float64)[:, None]
    assert CAF(f=5).explain(draw(20) * lengths).rejected.any()
    assert not SpectralFilter(f=5).explain(draw(20) * lengths).not_believed


@pytest.mark.parametrize("rule", [CAF(f=6), SpectralFilter(f=6), ScaledFilter(f=6)], ids=str)
def test_far_rows_are_cut_and_told_apart_from_those_that_pull_together(rule: Rule) -> None:
    x = draw(20)
    x[14:] += 1e4 * draw(6, seed=1)
    verdict = rule.explain(x)
    assert verdict.rejected[14:].all()
    assert all(verdict.reasons[i].startswith("far: ") and verdict.reasons[i].endswith(": cut") for i in range(14, 20))
    x = draw(20)
    x[14:] = x[:14].mean(dim=0) + 1.2 * draw(1, seed=1) + 0.1 * draw(6, seed=2)
    verdict = rule.explain(x)
    assert {i for i in range(20) if "pulls with others in one direction" in verdict.reasons[i]} >= set(range(14, 20))


def test_part_of_a_weight_is_told_and_is_no_rejection() -> None:
    x = draw(12, seed=2)
    x[9:] = x[:9].mean(dim=0) + 1.6 * draw(1, seed=1) + 0.5 * draw(3, seed=2)
    verdict = SpectralFilter(f=3).explain(x)
    assert verdict.not_believed == [9, 10, 11]
    for i in verdict.not_believed:
        assert verdict.reasons[i].startswith("pulls with others in one direction: 2")
        assert verdict.reasons[i].endswith("% of its weight left")
    assert not verdict.rejected.any()


def test_behind_a_pre_aggregator_a_row_has_the_weight_of_the_best_mixed_row_it_is_in() -> None:
    x = draw(20)
    x[19] += 1e6
    verdict = (NNM(f=6) >> SpectralFilter(f=6)).explain(x)
    assert verdict.rejected.tolist() == [False] * 19 + [True]
    assert verdict.reasons[19].startswith("far: ")


@pytest.mark.parametrize("f", [2, 4, 6, 8])
@pytest.mark.parametrize("distance", [0.7, 1.5, 1e1, 1e3, 1e6, 1e9])
@pytest.mark.parametrize("heap", [0, 3, 6])
def test_no_error_grows_with_distance_even_where_honest_rows_are_copies(f: int, distance: float, heap: int) -> None:
    h, way = 20 - f, draw(1, 40, seed=9)
    for together in (0.0, 0.3, 1.0):
        x = draw(20, 40)
        x[:heap] = x[0].clone()
        x[h:] = x[:h].mean(dim=0) + distance * (way + together * draw(f, 40, seed=3))
        x[h] += 11 * distance * way[0]  # one of them farther, to drag the first mean
        assert deviate(SpectralFilter(f=f), x, h) < {2: 0.1, 4: 0.2, 6: 0.6, 8: 2.0}[f]
        assert deviate(ScaledFilter(f=f), x, h) < {2: 0.1, 4: 0.2, 6: 0.6, 8: 2.0}[f]


def test_scaled_distances_show_colluders_who_hide_behind_coordinates_that_vary_much() -> None:
    spread = torch.logspace(-3, 0, 200)
    x = draw(20, 200) * spread
    x[14:] = x[:14].mean(dim=0) + 0.5 * (spread.norm() / 200**0.5) + 0.1 * draw(6, 200, seed=1) * spread
    assert float(SpectralFilter(f=6).explain(x).weights[14:].sum()) > 0.2
    verdict = ScaledFilter(f=6).explain(x)
    assert float(verdict.weights[14:].sum()) < 0.02
    assert not verdict.rejected[:14].any()


def test_a_scaled_filter_knows_distances_where_no_spread_is_left() -> None:
    x = draw(1, 30).expand(20, 30).clone()
    x[17:] += 1e3 * draw(3, 30, seed=1)
    verdict = ScaledFilter(f=6).explain(x)
    assert verdict.rejected.tolist() == [False] * 17 + [True] * 3
    assert torch.allclose(verdict.value, x[0])
    assert torch.allclose(ScaledFilter(f=6)(x[:17]), x[0])


def test_copies_of_one_client_keep_their_say() -> None:
    x = draw(20)
    x[:10] = x[0].clone()
    weights = SpectralFilter(f=6).explain(x).weights
    assert float(weights[:10].sum()) > 0.3
    x = draw(20)
    x[1] = x[0]
    assert float(SpectralFilter(f=6).explain(x).weights[:2].sum()) == pytest.approx(0.1, rel=0.05)
