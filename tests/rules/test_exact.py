"""What ends where it should: the mean to the last bit, the geometric median at its optimum."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import robagg as ra


def test_the_mean_of_whole_numbers_is_exact() -> None:
    assert float(ra.Mean()(torch.tensor([[1.0], [4.0], [7.0]], dtype=torch.float64))) == 4.0


@given(st.integers(1, 12), st.integers(0, 10**6))
def test_the_mean_is_numpys_to_the_last_bit(n: int, seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=(n, 5))
    assert (ra.Mean()(x) == x.mean(axis=0)).all()


@pytest.mark.parametrize("n", [4, 7, 20])
@pytest.mark.parametrize("seed", range(4))
def test_the_geometric_median_is_where_unit_pulls_cancel(n: int, seed: int) -> None:
    """At a row, those of the others do up to one."""
    x = torch.randn(n, 6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    x[: n // 3] += 4
    gaps = ra.RFA(iterations=None, smoothing=1e-9)(x) - x
    lengths = gaps.norm(dim=1, keepdim=True)
    apart = lengths[:, 0] > 1e-3
    pull = float((gaps / lengths)[apart].sum(dim=0).norm())
    assert pull < (1e-6 if bool(apart.all()) else 1 + 1e-3)
    few = ra.RFA(smoothing=1e-9)(x) - x
    assert float(lengths.sum()) < float(few.norm(dim=1).sum())


def test_it_converges_with_votes_and_behind_a_pre_aggregator_as_many_steps_do() -> None:
    x = torch.randn(9, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for text in ("rfa", "nnm >> rfa"):
        until, many = (ra.parse(f"{text}(iterations={k})", f=2) for k in ("none", 20000))
        weights = [3, 1, 4, 1, 5, 9, 2, 6, 5]
        assert torch.allclose(until(x), many(x), atol=1e-8)
        assert torch.allclose(until(x, weights=weights), many(x, weights=weights), atol=1e-8)
    assert str(until) == "nnm(f=2) >> rfa(f=2, iterations=None)"
    assert ra.parse(str(until)) == until
