"""Pre-aggregators called alone: the rows that a rule behind them would see, in the kind that came."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import oracle
import robagg as ra


def draw(n: int = 7, d: int = 6, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(2), dtype=dtype)


ORACLES: list[tuple[Any, Any]] = [
    (ra.NNM(f=2), lambda rows: oracle.nnm(rows, 2)),
    (ra.Clipping(norm=1.5), lambda rows: oracle.clipping(rows, 1.5)),
    (ra.ARC(f=2), lambda rows: oracle.clip_longest(rows, 2)),
    (ra.MedianClipping(), oracle.clip_to_median),
    (ra.ARC(f=2) >> ra.NNM(f=2), lambda rows: oracle.nnm(oracle.clip_longest(rows, 2), 2)),
]


@pytest.mark.parametrize(
    ("mixer", "define"), ORACLES, ids=lambda value: str(value) if isinstance(value, ra.Mixer) else ""
)
def test_the_rows_are_those_of_the_definition(mixer: Any, define: Any) -> None:
    x = draw()
    wanted = torch.tensor(define(x.tolist()), dtype=torch.float64)
    assert torch.allclose(mixer(x), wanted, atol=1e-12)
    assert torch.allclose(mixer(x * 1e-3) * 1e3, wanted, atol=1e-12) or "norm" in str(mixer)
    assert torch.allclose(mixer(x.float()).double(), wanted, atol=1e-5)


def test_the_kind_comes_back() -> None:
    x, mixer = draw(), ra.NNM(f=2)
    wanted = mixer(x)
    array = mixer(x.numpy())
    assert type(array) is np.ndarray and np.allclose(array, wanted)
    rows = mixer(list(x))
    assert type(rows) is list and torch.allclose(torch.stack(rows), wanted)
    trees = mixer([{"a": row[:2], "b": [row[2:].numpy()], "count": torch.tensor(3)} for row in x])
    assert torch.allclose(torch.stack([torch.cat([t["a"], torch.from_numpy(t["b"][0])]) for t in trees]), wanted)
    assert trees[0]["count"] == 3
    half = mixer(x.half())
    assert half.dtype == torch.float16 and half.shape == (7, 6)
    assert mixer(torch.zeros(5, 0)).shape == (5, 0)


def test_a_rule_on_the_rows_gives_what_the_chain_gives() -> None:
    x = draw(8)
    for mixer in (ra.NNM(f=2), ra.ARC(f=2), ra.Bucketing(s=2), ra.Bucketing(s=3) >> ra.MedianClipping()):
        first, second = (torch.Generator().manual_seed(4) for _ in range(2))
        alone = ra.CM(f=1)(mixer(x, generator=first))
        assert torch.allclose(alone, (mixer >> ra.CM(f=1))(x, generator=second), atol=1e-12)


def test_broken_rows_are_left_out_with_a_warning_and_huge_ones_are_not() -> None:
    x = draw()
    x[3, 1] = math.nan
    with pytest.warns(RuntimeWarning, match=r"nnm\(f=2\) leaves out 1 broken rows \(row 3: not finite\)"):
        rows = ra.NNM(f=2)(x)
    assert torch.allclose(rows, ra.NNM(f=2)(torch.cat([x[:3], x[4:]])))
    huge = draw() * 1e300
    assert torch.allclose(ra.NNM(f=2)(huge) / 1e300, ra.NNM(f=2)(draw()))


def test_what_a_rule_refuses_is_refused() -> None:
    with pytest.raises(ValueError, match=r"NNM: n must be at least 2f\+1, got n=3, f=2"):
        ra.NNM(f=2)(draw(3))
    with pytest.raises(TypeError, match="got str"):
        ra.NNM(f=2)("rows")
