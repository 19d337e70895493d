"""MDA and SMEA search exactly as far as they say, and refuse what is beyond in a sentence."""

from __future__ import annotations

import pytest
import torch

import robagg as ra
from robagg.rules.mda import find_tightest


def test_mda_finds_the_rows_of_least_diameter_among_sixty() -> None:
    x = 10 * torch.randn(60, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    near = sorted(torch.randperm(60, generator=torch.Generator().manual_seed(1))[:31].tolist())
    x[near] = 0.01 * x[near]
    kept = find_tightest(torch.cdist(x, x).tolist(), 29)
    assert kept == near
    assert torch.allclose(ra.MDA(f=29)(x), x[near].mean(0))


def test_smea_keeps_the_flattest_rows_of_twenty() -> None:
    x = torch.randn(20, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x[3:20:3] += 3
    assert torch.allclose(ra.SMEA(f=6)(x), x[[i for i in range(20) if i not in range(3, 20, 3)]].mean(0))


def test_what_is_too_much_to_search_is_refused() -> None:
    with pytest.raises(ValueError, match="MDA: n must be at most 60, to be searched, got 61"):
        ra.MDA(f=1)(torch.randn(61, 2))
    with pytest.raises(ValueError, match=r"SMEA: choices .* must be at most 200000, got 847660528 with n=40, f=10"):
        ra.SMEA(f=10)(torch.randn(40, 2))


def test_bulyan_says_when_nothing_is_proved() -> None:
    with pytest.warns(RuntimeWarning, match=r"bulyan\(f=2\) protects as proved with n >= 4f\+3 rows, got n=10, f=2"):
        ra.Bulyan(f=2)(torch.randn(10, 2))
