"""Attacks made against rules that look at distances, votes and directions: each against its formula, in plain loops."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
import torch
from torch import Tensor

from robagg.attacks import BF, Clones, Decoy, Groups, Heap, MinMax, MinSum, parse
from robagg.attacks.base import Setup, View
from robagg.lab.run import spell

ALONG = ["mean", "std", "sign"]


def draw(rows: int, d: int, number: int = 0) -> Tensor:
    return torch.randn(rows, d, dtype=torch.float64, generator=torch.Generator().manual_seed(number)) + 0.3


def setup(n: int, f: int, d: int, number: int = 1) -> Setup:
    return Setup(n, f, d, dtype=torch.float64, generator=torch.Generator().manual_seed(number))


def gap(a: list[float], b: list[float]) -> float:
    return math.dist(a, b)


def point_along(honest: Tensor, along: str) -> list[float]:
    """The unit vector u in plain numbers."""
    x = honest.tolist()
    h, d = len(x), len(x[0])
    mean = [sum(row[j] for row in x) / h for j in range(d)]
    u = {
        "mean": [-m for m in mean],
        "std": [-math.sqrt(sum((row[j] - mean[j]) ** 2 for row in x) / (h - 1)) for j in range(d)],
        "sign": [-math.copysign(1, m) for m in mean],
    }[along]
    length = math.hypot(*u)
    return [value / length for value in u]


def spread_of(honest: Tensor) -> float:
    mean = honest.mean(0).tolist()
    return math.sqrt(sum(gap(row, mean) ** 2 for row in honest.tolist()) / len(honest))


def step(honest: Tensor, along: str, distance: float) -> list[float]:
    mean = honest.mean(0).tolist()
    return [m + distance * u for m, u in zip(mean, point_along(honest, along), strict=True)]


@pytest.mark.parametrize("along", ALONG)
@pytest.mark.parametrize("number", range(5))
def test_minmax_goes_as_far_as_no_distance_exceeds_the_largest_honest_one(along: str, number: int) -> None:
    honest = draw(9, 4, number)
    sent, _ = MinMax(along).craft(View(honest, None, 12, 3), {})
    rows = honest.tolist()
    widest = max(gap(a, b) for a, b in combinations(rows, 2))
    gamma = float((sent[0] - honest.mean(0)).norm())
    torch.testing.assert_close(sent, torch.tensor([step(honest, along, gamma)] * 3, dtype=sent.dtype))
    assert max(gap(sent[0].tolist(), row) for row in rows) == pytest.approx(widest)
    assert max(gap(step(honest, along, 1.001 * gamma), row) for row in rows) > widest


@pytest.mark.parametrize("along", ALONG)
@pytest.mark.parametrize("number", range(5))
def test_minsum_goes_as_far_as_its_sum_does_not_exceed_the_largest_honest_one(along: str, number: int) -> None:
    honest = draw(9, 4, number)
    sent, _ = MinSum(along).craft(View(honest, None, 12, 3), {})
    rows = honest.tolist()
    largest = max(sum(gap(a, b) ** 2 for b in rows) for a in rows)
    gamma = float((sent[0] - honest.mean(0)).norm())
    torch.testing.assert_close(sent, torch.tensor([step(honest, along, gamma)] * 3, dtype=sent.dtype))
    assert sum(gap(sent[0].tolist(), row) ** 2 for row in rows) == pytest.approx(largest)


@pytest.mark.parametrize("name", ["minmax", "minsum"])
def test_a_scale_multiplies_the_distance_from_the_mean(name: str) -> None:
    honest = draw(7, 5)
    once, twice = (parse(f"{name}(scale={k})").craft(View(honest, None, 9, 2), {})[0] for k in (1, 2))
    torch.testing.assert_close(twice - honest.mean(0), 2 * (once - honest.mean(0)))


@pytest.mark.parametrize("along", ALONG)
def test_a_heap_stands_at_its_distance_and_its_rows_apart(along: str) -> None:
    honest, attack = draw(14, 30), Heap(along, distance=0.8, jitter=0.2)
    spread = spread_of(honest)
    state = attack.start(setup(20, 6, 30))
    sent, _ = attack.craft(View(honest, None, 20, 6), state)
    centre = torch.tensor(step(honest, along, 0.8 * spread), dtype=sent.dtype)
    own = state["mix"] @ (honest - honest.mean(0))
    torch.testing.assert_close(sent, centre + 0.2 * own)
    gaps = [gap(a, b) for a, b in combinations(sent.tolist(), 2)]
    assert 0.05 * spread < min(gaps)
    assert max(gaps) < spread


@pytest.mark.parametrize("name", ["heap", "groups"])
def test_a_heap_changes_sides_after_each_period(name: str) -> None:
    honest = draw(14, 30)
    still, turning = parse(f"{name}(along='mean', jitter=0)"), parse(f"{name}(along='mean', jitter=0, period=2)")
    there, _ = still.craft(View(honest, None, 20, 6), still.start(setup(20, 6, 30)))
    other = there - 2 * (there.mean(0) - honest.mean(0))  # groups stand aside of it as before
    state = turning.start(setup(20, 6, 30))
    for side in (there, there, other, other, there):
        sent, state = turning.craft(View(honest, None, 20, 6), state)
        torch.testing.assert_close(sent, side)


def test_groups_move_aside_by_their_side_and_cancel() -> None:
    honest, attack = draw(14, 30), Groups("mean", jitter=0.0, distance=0.5, groups=3, side=0.4)
    spread = spread_of(honest)
    sent, _ = attack.craft(View(honest, None, 20, 6), attack.start(setup(20, 6, 30)))
    aside = sent - torch.tensor(step(honest, "mean", 0.5 * spread), dtype=sent.dtype)
    assert [gap(row, [0.0] * 30) for row in aside.tolist()] == pytest.approx([0.4 * spread] * 6)
    torch.testing.assert_close(sent[:3], sent[3:])
    # Two groups cancel; of more the directions sum to zero before each is brought to its length.
    two = Groups("mean", jitter=0.0, distance=0.5, groups=2, side=0.4)
    sent, _ = two.craft(View(honest, None, 20, 6), two.start(setup(20, 6, 30)))
    torch.testing.assert_close(sent.mean(0), torch.tensor(step(honest, "mean", 0.5 * spread), dtype=sent.dtype))


def test_one_group_is_a_heap() -> None:
    honest, group, heap = draw(9, 6), Groups(groups=1), Heap()
    sent, _ = group.craft(View(honest, None, 12, 3), group.start(setup(12, 3, 6)))
    torch.testing.assert_close(sent, heap.craft(View(honest, None, 12, 3), heap.start(setup(12, 3, 6)))[0])


def test_decoys_go_far_on_the_side_where_the_others_stand() -> None:
    honest, spread = draw(9, 6), spread_of(draw(9, 6))
    attack = Decoy("std", jitter=0.0, distance=2.0, reach=10.0, decoys=2)
    sent, _ = attack.craft(View(honest, None, 13, 4), {})
    wanted = [step(honest, "std", c * spread) for c in (20, 20, 2, 2)]
    torch.testing.assert_close(sent, torch.tensor(wanted, dtype=sent.dtype))


@pytest.mark.parametrize("of", ["near", "far", "centre", "rim"])
def test_clones_copy_the_clients_they_name_in_turn(of: str) -> None:
    honest = draw(9, 6)
    rows = honest.tolist()
    point = rows[0] if of in ("near", "far") else honest.mean(0).tolist()
    order = sorted(range(9), key=lambda i: gap(rows[i], point), reverse=of in ("far", "rim"))[:3]
    sent, _ = Clones(of=of, jitter=0.0).craft(View(honest, None, 14, 5), {})
    assert sent.tolist() == [rows[order[k % 3]] for k in range(5)]


def test_clones_are_apart_by_their_jitter() -> None:
    honest, attack, plain = draw(9, 6), Clones(jitter=0.3), Clones(jitter=0.0)
    state = attack.start(setup(14, 5, 6))
    sent, _ = attack.craft(View(honest, None, 14, 5), state)
    copies, _ = plain.craft(View(honest, None, 14, 5), {})
    torch.testing.assert_close(sent - copies, 0.3 * state["mix"] @ (honest - honest.mean(0)))


def test_bf_with_momentum_averages_its_gradients_from_zero() -> None:
    attack, f, d = BF(scale=0.3, momentum=0.9), 3, 4
    state, kept = attack.start(setup(8, f, d)), [[0.0] * d for _ in range(f)]
    for number in range(4):
        own = draw(f, d, number)
        kept = [
            [0.9 * m + 0.1 * g for m, g in zip(row, fresh, strict=True)]
            for row, fresh in zip(kept, own.tolist(), strict=True)
        ]
        sent, state = attack.craft(View(draw(5, d), own, 8, f), state)
        torch.testing.assert_close(sent, -0.3 * torch.tensor(kept, dtype=sent.dtype))


def test_bf_remembers_the_momenta_of_clients_that_are_not_asked() -> None:
    attack, own = BF(momentum=0.5), draw(3, 4)
    state = attack.start(setup(8, 3, 4))
    sent, state = attack.craft(View(draw(5, 4), own[[0, 2]], 7, 2, clients=(0, 2)), state)
    torch.testing.assert_close(sent, -0.5 * own[[0, 2]])
    assert state["own"][1].tolist() == [0.0] * 4
    sent, _ = attack.craft(View(draw(5, 4), own[[1, 2]], 7, 2, clients=(1, 2)), state)
    torch.testing.assert_close(sent, torch.stack([-0.5 * own[1], -0.75 * own[2]]))


def test_bf_without_parameters_has_the_text_key_and_memory_it_had() -> None:
    assert str(parse("bf(scale=1, momentum=0)")) == "bf"
    assert spell(BF(), full=True) == "bf"
    assert BF().start(setup(8, 3, 4)) == {}
    assert "momentum" in spell(BF(momentum=0.9), full=True)
