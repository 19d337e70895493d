"""Attacks that were published against certain rules, each against its formula in plain loops."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

import robagg as ra
from robagg.attacks import ROP, SCM, Fang, NoAttack, Sparse, Varying
from robagg.attacks.base import Setup, View
from robagg.attacks.scm import DISTANCES


def draw(rows: int, d: int, number: int = 0, shift: float = 0.3) -> Tensor:
    return torch.randn(rows, d, dtype=torch.float64, generator=torch.Generator().manual_seed(number)) + shift


def sign(x: float) -> float:
    return math.copysign(1, x) if x else 0.0


def krum_choice(rows: list[list[float]], f: int) -> int:
    scores = [sum(sorted(math.dist(a, b) ** 2 for b in rows)[: len(rows) - f]) for a in rows]
    return scores.index(min(scores))


def search_lambda(honest: Tensor, f: int) -> float:
    rows, mean = honest.tolist(), honest.mean(0).tolist()
    n, d = len(rows) + f, len(mean)
    near = min(sum(sorted(math.dist(a, b) ** 2 for b in rows if b is not a)[: n - f - 2]) for a in rows)
    longest = max(math.hypot(*row) for row in rows)
    length = math.sqrt(near / ((n - 2 * f - 1) * d)) + longest / math.sqrt(d)
    for _ in range(24):
        sent = [[-length * sign(m) for m in mean]] * f
        if krum_choice(rows + sent, f) >= len(rows):
            break
        length /= 2
    return length


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("shift", [0.0, 0.3, 2.0])
def test_fang_sends_the_longest_that_krum_chooses(number: int, shift: float) -> None:
    honest, f = draw(9, 5, number, shift), 3
    sent, _ = Fang("krum").craft(View(honest, None, 12, f), {})
    length = search_lambda(honest, f)
    wanted = torch.tensor([[-length * sign(m) for m in honest.mean(0).tolist()]] * f, dtype=honest.dtype)
    torch.testing.assert_close(sent, wanted)


def test_fang_goes_beyond_the_honest_values_of_each_coordinate() -> None:
    honest = draw(9, 400, 3)
    sent, _ = Fang("trim").craft(View(honest, None, 12, 3, torch.Generator().manual_seed(0)), {})
    for j in range(400):
        column = honest[:, j].tolist()
        if sum(column) < 0:
            edge, far = max(column), max(column) * (2 if max(column) > 0 else 0.5)
        else:
            edge, far = min(column), min(column) * (0.5 if min(column) > 0 else 2)
        for value in sent[:, j].tolist():
            assert min(edge, far) <= value <= max(edge, far)
    assert len(set(sent[:, 0].tolist())) == 3
    even, _ = Fang("trim").craft(View(honest[:, :1], None, 1009, 1000, torch.Generator().manual_seed(0)), {})
    edge = even.min() if honest[:, 0].mean() < 0 else even.max()
    assert torch.isclose((even - edge).abs().mean(), (even - edge).abs().max() / 2, rtol=0.05)


@pytest.mark.parametrize("rule", [ra.TM(f=3), ra.CM(f=3), ra.Krum(f=3)])
def test_fang_turns_the_rule_that_it_was_made_for(rule: ra.Rule) -> None:
    """The value has less of the honest mean's direction than under a control; against Krum it points the other way."""
    honest = draw(9, 300, 1)
    mean = honest.mean(0)
    generator = torch.Generator().manual_seed(0)
    control, sent = (attack(honest, f=3, rule=rule, generator=generator) for attack in (NoAttack(), Fang()))
    before, after = (float(rule(torch.cat([honest, rows])) @ mean) for rows in (control, sent))
    assert after < 0.6 * before
    assert (after < 0) == isinstance(rule, ra.Krum)


@pytest.mark.parametrize("strengths", [(1.0, 1.0, 0.9, 90.0), (2.5, 0.3, 0.0, 180.0), (0.5, 0.0, 1.0, 135.0)])
def test_rop_stands_beside_the_last_aggregate(strengths: tuple[float, float, float, float]) -> None:
    distance, location, reference, angle = strengths
    honest, last = draw(6, 5), draw(1, 5, 9)[0].tolist()
    mean = honest.mean(0).tolist()
    r = [reference * a + (1 - reference) * m for a, m in zip(last, mean, strict=True)]
    part = sum(r) / sum(v * v for v in r)
    p = [1 - part * v for v in r]
    ahead, aside = [v / math.hypot(*r) for v in r], [v / math.hypot(*p) for v in p]
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    wanted = [
        location * a + (1 - location) * m + distance * (cos * u + sin * v)
        for a, m, u, v in zip(last, mean, ahead, aside, strict=True)
    ]
    attack = ROP(distance, location, reference, angle=angle)
    view = View(honest, None, 8, 2, last=torch.tensor(last, dtype=honest.dtype))
    sent, _ = attack.craft(view, attack.start(Setup(8, 2, 5, dtype=honest.dtype)))
    torch.testing.assert_close(sent, torch.tensor([wanted] * 2, dtype=honest.dtype))


def test_where_nothing_is_remembered_rop_takes_the_last_honest_mean() -> None:
    attack, first, second = ROP(), draw(6, 5, 1), draw(6, 5, 2)
    _, state = attack.craft(View(first, None, 8, 2), attack.start(Setup(8, 2, 5, dtype=first.dtype)))
    blind, _ = attack.craft(View(second, None, 8, 2), state)
    seeing, _ = attack.craft(View(second, None, 8, 2, last=first.mean(0)), state)
    torch.testing.assert_close(blind, seeing)


def test_rop_drags_centred_clipping_along_one_direction_round_after_round() -> None:
    """Without an attack the rule ends far nearer to the honest mean."""
    rule, f = ra.CC(f=4, tau=1.0), 4
    pushed = []
    for attack in (ROP(), NoAttack()):
        state, last = attack.start(Setup(12, f, 40, dtype=torch.float64)), torch.zeros(40, dtype=torch.float64)
        for t in range(30):
            honest = 0.1 * draw(8, 40, t, 0.0)
            honest[:, 0] += 1
            sent, state = attack.craft(View(honest, None, 12, f, last=last), state)
            last = rule.step(torch.cat([honest, sent]), last)[1]
        pushed.append(float((last - honest.mean(0)).norm()))
    assert pushed[0] > 3 * pushed[1]


@pytest.mark.parametrize("rule", [ra.CM(f=3), ra.Krum(f=3), ra.TQ(f=3), ra.RFA(f=3), ra.NNM(f=3) >> ra.Krum(f=3)])
@pytest.mark.parametrize("along", ["mean", "std", "sign"])
def test_scm_stands_where_the_rule_moves_most(rule: ra.Rule, along: str) -> None:
    honest, f = draw(9, 6, 2), 3
    mean = honest.mean(0)
    u = {"mean": -mean, "std": -honest.std(0), "sign": -mean.sign()}[along]
    u = u / u.norm()
    spread = (honest - mean).square().sum(1).mean().sqrt()
    tried = [torch.cat([honest, (mean + c * spread * u).expand(f, -1)]) for c in DISTANCES]
    gains = [float(rule(x) @ u) for x in tried]
    sent = SCM(along)(honest, f=f, rule=rule)
    assert float(rule(torch.cat([honest, sent])) @ u) == pytest.approx(max(gains), rel=1e-6)
    distance = float((sent[0] - mean).norm() / spread)
    assert min(abs(distance / c - 1) for c in DISTANCES) < 1e-6


def test_scm_against_the_mean_goes_as_far_as_it_may() -> None:
    honest = draw(9, 6)
    sent = SCM()(honest, f=2, rule=ra.Mean())
    spread = (honest - honest.mean(0)).square().sum(1).mean().sqrt()
    assert float((sent[0] - honest.mean(0)).norm() / spread) == pytest.approx(max(DISTANCES))


def test_sparse_is_far_in_its_share_of_the_coordinates() -> None:
    honest, share = draw(9, 50), 0.1
    sent = Sparse(z=0.5, scale=7.0, share=share)(honest, f=2)
    mean, std = honest.mean(0).tolist(), honest.std(0).tolist()
    few = sorted(range(50), key=lambda j: -abs(mean[j]))[:5]
    wanted = [m - sign(m) * s * (7.0 if j in few else 0.5) for j, (m, s) in enumerate(zip(mean, std, strict=True))]
    torch.testing.assert_close(sent, torch.tensor([wanted] * 2, dtype=honest.dtype))
    assert Sparse().strength(20, 6) == ra.attacks.ALIE().strength(20, 6)


def test_a_varying_number_attacks_and_the_others_do_not() -> None:
    attack, honest = Varying("signflip", least=2), draw(7, 3)
    flipped = -honest.mean(0)
    control, _ = NoAttack().craft(View(honest, None, 12, 5), {})
    counts, clients = [0] * 6, [0] * 5
    generator = torch.Generator().manual_seed(0)
    for _ in range(400):
        sent, _ = attack.craft(View(honest, None, 12, 5, generator), {})
        attacks = [torch.equal(row, flipped) for row in sent]
        assert all(a or torch.equal(row, kept) for a, row, kept in zip(attacks, sent, control, strict=True))
        counts[sum(attacks)] += 1
        clients = [c + a for c, a in zip(clients, attacks, strict=True)]
    assert counts[:2] == [0, 0]
    assert all(70 < count < 130 for count in counts[2:])  # four numbers, 100 each
    assert all(240 < count < 320 for count in clients)  # 3.5 of 5 clients a round


def test_a_varying_attack_trains() -> None:
    x, y = draw(60, 4).float(), torch.arange(60) % 3
    clients = [(x[i::6], y[i::6]) for i in range(6)]
    result = ra.train(torch.nn.Linear(4, 3), clients, "tq", Varying("bf"), f=2, test=(x, y), rounds=5)
    assert result.accuracy is not None


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Fang("tm"), "against must be one of krum, trim, got 'tm'"),
        (lambda: Fang(reach=1.0), "reach must be a number above 1, got 1"),
        (lambda: ROP(location=1.5), "location must be a number from 0 to 1, got 1.5"),
        (lambda: Sparse(share=-0.1), "share must be a number from 0 to 1, got -0.1"),
        (lambda: Varying(""), "attack must be a text such as"),
        (lambda: Varying("nothing"), "unknown attack 'nothing'"),
        (lambda: SCM()(draw(3, 2)), "rule must be the rule that the rows will meet, got None"),
    ],
)
def test_what_cannot_be_is_refused(make: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()  # type: ignore[operator]
