"""Rules that measure to a row that the server trusts: with it, without it, and where it does not belong."""

from __future__ import annotations

import math
import warnings

import pytest
import torch

import oracle
import robagg as ra


def draw(n: int = 9, d: int = 5) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("kind", ["tensor", "list", "tree"])
def test_the_root_is_what_they_measure_to(kind: str) -> None:
    x, g = draw(), draw(1)[0] + 1
    near, _ = oracle.nearest_to(x.tolist(), 3, g.tolist())
    trusted, _ = oracle.fltrust(x.tolist(), g.tolist())
    for rule, wanted in ((ra.MoNNA(f=3), near), (ra.FLTrust(f=3), trusted)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if kind == "tensor":
                value = rule(x, root=g)
            elif kind == "list":
                value = rule.explain(list(x), root=g).value
            else:
                tree = rule.step([{"a": r[:2], "b": [r[2:]]} for r in x], root={"a": g[:2], "b": [g[2:]]})[0].value
                value = torch.cat([tree["a"], tree["b"][0]])
        assert torch.allclose(value, torch.tensor(wanted, dtype=torch.float64))


def test_most_may_be_byzantine_where_the_root_is_good() -> None:
    x = draw(10, 50)
    x[:3] += 3
    x[3:] = -100 * x[:3].mean(0)
    value = ra.FLTrust(f=4)(x, root=x[:3].mean(0) + 0.1)
    assert float(torch.cosine_similarity(value, x[:3].mean(0), dim=0)) > 0.9


@pytest.mark.parametrize("rule", [ra.MoNNA(f=2), ra.FLTrust(f=2), ra.NNM(f=2) >> ra.FLTrust(f=2)])
def test_without_a_root_the_median_stands_in_and_the_call_says_so(rule: ra.Rule) -> None:
    x = draw()
    with pytest.warns(RuntimeWarning, match="was given no root, .*: the coordinate-wise median stands in for it"):
        value = rule(x)
    if not rule.mixers:
        assert torch.allclose(value, rule(x, root=ra.CM()(x)))


def test_huge_rows_and_a_root_that_is_not_finite() -> None:
    x = draw() * 1e300
    near, _ = oracle.nearest_to(draw().tolist(), 3, draw()[0].tolist())
    assert torch.allclose(ra.MoNNA(f=3)(x, root=x[0]) / 1e300, torch.tensor(near, dtype=torch.float64))
    with pytest.raises(ValueError, match="the root must be finite, got NaN or Inf in it"):
        ra.MoNNA(f=3)(draw(), root=torch.full((5,), math.nan, dtype=torch.float64))


def test_a_root_that_nobody_measures_to_is_refused() -> None:
    with pytest.raises(ValueError, match=r"root must come with a rule that measures to a trusted row, got tq\(f=2\)"):
        ra.TQ(f=2)(draw(), root=draw()[0])
