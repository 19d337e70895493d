"""What jitter adds to a row: a vector of each client's own that looks like an honest deviation."""

from __future__ import annotations

import re

import pytest
import torch
from torch import Tensor

from robagg.attacks import ALIE, IPM, parse
from robagg.attacks.base import Setup, View
from robagg.attacks.jittered import draw_mix
from robagg.lab.run import spell


def draw(rows: int, d: int, number: int = 0) -> Tensor:
    return torch.randn(rows, d, dtype=torch.float64, generator=torch.Generator().manual_seed(number))


def setup(n: int, f: int, d: int, number: int = 1) -> Setup:
    return Setup(n, f, d, dtype=torch.float64, generator=torch.Generator().manual_seed(number))


@pytest.mark.parametrize("attack", ["alie", "ipm", "alie(z=0.5)", "ipm(c0=1.0)"])
def test_without_jitter_texts_keys_and_memory_are_as_they_were(attack: str) -> None:
    plain, told = parse(attack), parse(attack[:-1] + ", jitter=0)" if "(" in attack else f"{attack}(jitter=0)")
    assert plain == told
    assert str(told) == attack
    assert "jitter" not in spell(told, full=True)
    assert told.start(setup(8, 2, 3)) == {}
    assert "jitter" in spell(parse("alie(jitter=0.5)"), full=True)


@pytest.mark.parametrize(("n", "f"), [(20, 6), (5, 2), (8, 6), (3, 2)])
def test_each_client_moves_by_its_own_combination_of_honest_deviations(n: int, f: int) -> None:
    honest = draw(n - f, 7)
    attack, plain = ALIE(z=0.7, jitter=0.5), ALIE(z=0.7)
    state = attack.start(setup(n, f, 7))
    sent, _ = attack.craft(View(honest, None, n, f), state)
    row = plain.craft(View(honest, None, n, f), {})[0]
    mean = honest.mean(0)
    for k in range(f):
        own = sum(state["mix"][k, i] * (honest[i] - mean) for i in range(n - f))
        torch.testing.assert_close(sent[k], row[k] + 0.5 * own)


def test_the_directions_are_unit_vectors_at_right_angles_in_blocks_of_h() -> None:
    mix = draw_mix(setup(20, 6, 3))
    torch.testing.assert_close(mix @ mix.T, torch.eye(6, dtype=mix.dtype))
    mix = draw_mix(setup(9, 6, 3))
    torch.testing.assert_close(mix[:3] @ mix[:3].T, torch.eye(3, dtype=mix.dtype))
    torch.testing.assert_close(mix[3:] @ mix[3:].T, torch.eye(3, dtype=mix.dtype))


def test_its_squared_length_is_on_average_the_honest_spread() -> None:
    honest = draw(10, 30)
    spread = (honest - honest.mean(0)).square().sum(1).mean()
    attack = IPM(c0=1.0, jitter=2.0)
    lengths = []
    for number in range(400):
        sent, _ = attack.craft(View(honest, None, 14, 4), attack.start(setup(14, 4, 30, number)))
        lengths.append((sent + honest.mean(0)).square().sum(1))
    assert torch.cat(lengths).mean() / (4 * spread) == pytest.approx(1, abs=0.05)


def test_the_directions_last_for_the_whole_run() -> None:
    attack = ALIE(z=1.0, jitter=1.0)
    state = attack.start(setup(9, 3, 4))
    before = state["mix"].clone()
    for number in range(3):
        _, state = attack.craft(View(draw(6, 4, number), None, 9, 3), state)
    assert torch.equal(state["mix"], before)


def test_where_few_honest_clients_are_asked_the_length_is_kept() -> None:
    honest = draw(5, 40)
    spread = (honest - honest.mean(0)).square().sum(1).mean()
    attack = IPM(c0=1.0, jitter=1.0)
    lengths = []
    for number in range(400):
        state = attack.start(setup(14, 4, 40, number))
        sent, _ = attack.craft(View(honest, None, 7, 2, clients=(1, 3)), state)
        lengths.append((sent + honest.mean(0)).square().sum(1))
    assert torch.cat(lengths).mean() / spread == pytest.approx(1, abs=0.08)


def test_a_negative_jitter_is_refused() -> None:
    with pytest.raises(ValueError, match=re.escape("jitter must be a finite number >= 0, got -1")):
        parse("ipm(jitter=-1)")
    assert "each moved by 0.5 honest spreads of its own" in parse("ipm(jitter=0.5)").describe(20, 6)
