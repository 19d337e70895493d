"""The search for the worst positions: it finds what is known to break rules, and says what has no bound."""

from __future__ import annotations

import pytest
import torch

from robagg import parse
from robagg.worst_case import HONEST, draw_honest, find_worst_positions
from robagg.worst_case.families import FAMILIES, Draw, place


@pytest.mark.parametrize("kind", HONEST)
@pytest.mark.parametrize("h", [4, 12, 18])
def test_honest_rows_have_mean_0_and_variance_1(kind: str, h: int) -> None:
    x = draw_honest(kind, h, 40)
    assert x.shape == (h, 40)
    torch.testing.assert_close(x.mean(dim=0), torch.zeros(40, dtype=torch.float64))
    assert float(x.square().sum(dim=1).mean()) == pytest.approx(1)
    assert torch.equal(x, draw_honest(kind, h, 40)) and not torch.equal(x, draw_honest(kind, h, 40, seed=1))


@pytest.mark.parametrize(("kind", "share"), [("quarter", 0.25), ("half", 0.5)])
def test_copies_are_copies(kind: str, share: float) -> None:
    x = draw_honest(kind, 12, 40)
    near = torch.cdist(x, x) < 0.02
    assert int(near.sum(dim=1).max()) == int(12 * share)


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_places_f_rows_and_no_two_draws_are_alike(family: str) -> None:
    honest = draw_honest("skewed", 14, 40)
    draw = Draw(honest, 6, torch.Generator().manual_seed(0), torch.linalg.svd(honest, full_matrices=False)[2][:13])
    first, second = place(draw, family), place(draw, family)
    assert first.shape == (6, 40) and first.isfinite().all() and not torch.equal(first, second)


def test_the_mean_grows_without_bound_and_the_spectral_filter_does_not() -> None:
    found = find_worst_positions("mean", n=12, f=2, d=20, budget=200)
    assert found.grows is not None
    bounded = find_worst_positions("spectralfilter", n=12, f=2, d=20, budget=200)
    assert bounded.grows is None and 0.01 < bounded.ratio < 0.5


def test_the_ratio_is_that_of_the_public_call_on_the_stack() -> None:
    for rule in ("tq", "caf", "nnm >> cm"):
        found = find_worst_positions(rule, "clustered", n=12, f=3, d=10, budget=100)
        x, h = found.stack, 9
        gap = parse(rule, f=3)(x) - x[:h].mean(dim=0)
        assert float(gap.square().sum() / x[:h].square().sum(dim=1).mean()) == pytest.approx(found.ratio, rel=1e-6)


def test_more_budget_finds_more_and_equal_seeds_find_the_same() -> None:
    little = find_worst_positions("cm", n=12, f=3, d=20, budget=40)
    much = find_worst_positions("cm", n=12, f=3, d=20, budget=3000)
    assert much.ratio > little.ratio
    again = find_worst_positions("cm", n=12, f=3, d=20, budget=3000)
    assert (again.ratio, again.family) == (much.ratio, much.family) and torch.equal(again.stack, much.stack)


def test_whoever_watches_sees_it_grow() -> None:
    seen: list[tuple[int, float]] = []
    found = find_worst_positions(
        "krum", n=9, f=2, d=5, budget=200, watch=lambda done, worst: seen.append((done, worst))
    )
    assert [done for done, _ in seen] == sorted({done for done, _ in seen}) and seen[-1][0] == 200
    assert seen[-1][1] == found.ratio >= seen[0][1]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"honest": "odd"}, "honest rows must be one of gaussian, .*, got 'odd'"),
        ({"f": 0}, "f must be a whole number from 1 on, got 0"),
        ({"n": 12, "f": 6}, "n must be at least 2f\\+1, got n=12, f=6"),
        ({"budget": 3}, "budget must be a whole number from 10 on, got 3"),
    ],
)
def test_what_cannot_be_searched_is_refused(wrong: dict[str, int], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        find_worst_positions("cm", **wrong)  # type: ignore[arg-type]
