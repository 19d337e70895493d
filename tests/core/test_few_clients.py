"""Few clients: behind NNM, whose mixed rows coincide, honest ones are not rejected where nobody attacks."""

from __future__ import annotations

import math
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor

import oracle
import robagg as ra
from robagg.lab import Run

SCRIPTS = Path(__file__).parents[2] / "docs" / "scripts"


@pytest.fixture(scope="module")
def simulation() -> ModuleType:
    sys.path.insert(0, str(SCRIPTS))
    try:
        return import_module("few_clients")
    finally:
        sys.path.remove(str(SCRIPTS))


def draw_rows(n: int, seed: int, d: int = 200) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("chain", ["nnm >> tq", "nnm >> huber", "spectralfilter", "scaledfilter"])
@pytest.mark.parametrize(("uneven", "most"), [(0, 0.01), (1, 0.05)])
@pytest.mark.parametrize(("n", "f"), [(5, 1), (6, 1), (8, 1), (8, 2), (10, 2), (13, 3), (20, 5), (40, 10)])
def test_honest_clients_are_believed_where_nobody_attacks(
    simulation: ModuleType, chain: str, uneven: int, most: float, n: int, f: int
) -> None:
    assert simulation.count_doubted(chain, n, f, uneven, rounds=30) <= most


def test_the_papers_tau_falls_to_zero_where_mixed_rows_coincide() -> None:
    x = draw_rows(8, 0) * (0.5 + torch.rand(8, 1, generator=torch.Generator().manual_seed(0)))
    assert ra.parse("nnm >> tq(floor=False)", f=2).explain(x).tau == 0
    assert ra.parse("nnm >> tq(floor=False)", f=2).explain(x).rejected.any()
    verdict = ra.parse("nnm >> tq", f=2).explain(x)
    assert verdict.tau is not None and verdict.tau > 0 and not verdict.not_believed


def test_a_reply_that_is_nan_does_not_make_the_rest_doubted() -> None:
    """Six replies, f=2: the five that are left are at the most that f allows, where TQ alone believes nobody."""
    alone, mixed = 0, 0
    for seed in range(20):
        x = draw_rows(6, seed)
        x[5] = math.nan
        alone += len(ra.parse("tq", f=2).explain(x).not_believed) - 1
        mixed += len(ra.parse("nnm >> tq", f=2).explain(x).not_believed) - 1
    assert alone == 100 and mixed <= 5


@pytest.mark.parametrize("far", [8.0, 30.0, 1e6])
def test_the_floor_lets_no_far_row_in(far: float) -> None:
    for n, f in ((5, 1), (8, 2), (12, 3), (20, 6)):
        x = draw_rows(n, n)
        x[n - f :] = far
        verdict = ra.parse("nnm >> tq", f=f).explain(x)
        assert verdict.rejected.tolist() == [i >= n - f for i in range(n)]
        torch.testing.assert_close(verdict.value, x[: n - f].mean(0))


@pytest.mark.parametrize("text", ["nnm >> tq", "nnm >> huber", "bucketing(s=1) >> nnm >> tq"])
def test_tau_is_no_less_than_what_mixing_leaves(text: str) -> None:
    n, f = 9, 2
    x = draw_rows(n, 3).double()
    near = oracle.neighbours(x.tolist(), f)
    shares = [[1 / (n - f) if j in some else 0.0 for j in range(n)] for some in near]
    rule = ra.parse(text.replace(">> tq", ">> tq(iterations=1)").replace(">> huber", ">> huber(iterations=1)"), f=f)
    least = oracle.floor(x.tolist(), shares)
    assert least > oracle.spread(oracle.nnm(x.tolist(), f))
    assert rule.explain(x).tau == pytest.approx(math.sqrt((n - f) / f * least))


@pytest.mark.parametrize("text", ["tq", "huber", "bucketing >> tq", "clipping >> huber", "nnm >> cm", "nnm >> mca"])
def test_only_spreads_of_rows_that_share_are_kept_up(text: str) -> None:
    """What is not behind NNM, or takes no spread, is what it was: its key too."""
    plain = ra.parse(text, f=2)
    floored = text.replace("tq", "tq(floor=False)").replace("huber", "huber(floor=False)")
    x = draw_rows(9, 1)
    values = [r(x, generator=torch.Generator().manual_seed(0)) for r in (plain, ra.parse(floored, f=2))]
    assert torch.equal(*values)
    assert Run(rule=text, f=2).key == Run(rule=floored, f=2).key


def test_what_changed_has_a_key_of_its_own_and_what_was_keeps_its_key() -> None:
    for rule in ("tq", "huber"):
        assert Run(rule=f"nnm >> {rule}", f=2).key != Run(rule=f"nnm >> {rule}(floor=False)", f=2).key
        assert (
            Run(rule=f"nnm >> bucketing >> {rule}", f=2).key
            != Run(rule=f"nnm >> bucketing >> {rule}(floor=False)", f=2).key
        )
    # As it was stored before there was a floor.
    assert Run(rule="nnm >> tq(floor=False)", task="mnist", attack="ipm", f=1).key == "e6b3433edd99409ff37a75b0"
