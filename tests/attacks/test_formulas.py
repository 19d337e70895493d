"""Each attack against its formula, in plain loops over Python floats."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from robagg.attacks import ALIE, BF, GA, IPM, LF, MIMIC, Mixed, NoAttack, NonFinite, SignFlip
from robagg.attacks.base import Setup, View

Rows = list[list[float]]


def draw(rows: int, d: int, number: int = 0) -> Tensor:
    return torch.randn(rows, d, dtype=torch.float64, generator=torch.Generator().manual_seed(number))


def mean(x: Rows) -> list[float]:
    return [sum(row[j] for row in x) / len(x) for j in range(len(x[0]))]


def std(x: Rows) -> list[float]:
    m = mean(x)
    if len(x) == 1:
        return [0.0 for _ in m]
    return [math.sqrt(sum((row[j] - m[j]) ** 2 for row in x) / (len(x) - 1)) for j in range(len(m))]


def quantile(share: float) -> float:
    """Phi^-1 by halving an interval."""
    low, high = -10.0, 10.0
    for _ in range(100):
        middle = (low + high) / 2
        if 0.5 * (1 + math.erf(middle / math.sqrt(2))) < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def z_by_formula(n: int, f: int) -> float:
    s = math.floor(n / 2 + 1) - f
    return quantile((n - f - s) / (n - f))


def dot(a: list[float], b: list[float]) -> float:
    return sum(p * q for p, q in zip(a, b, strict=True))


def assert_sends(sent: Tensor, wanted: Rows) -> None:
    torch.testing.assert_close(sent, torch.tensor(wanted, dtype=sent.dtype).reshape(sent.shape), rtol=1e-9, atol=1e-9)


minority = st.integers(3, 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, (n - 1) // 2)))


@settings(max_examples=60, deadline=None)
@given(nf=minority, d=st.integers(1, 5), number=st.integers(0, 1000))
def test_alie_is_mean_minus_z_std(nf: tuple[int, int], d: int, number: int) -> None:
    n, f = nf
    honest = draw(n - f, d, number)
    sent, _ = ALIE().craft(View(honest, None, n, f), {})
    m, s, z = mean(honest.tolist()), std(honest.tolist()), z_by_formula(n, f)
    assert_sends(sent, [[m[j] - z * s[j] for j in range(d)]] * f)


def test_alie_takes_a_given_z() -> None:
    honest = draw(9, 4)
    m, s = mean(honest.tolist()), std(honest.tolist())
    sent, _ = ALIE(z=1.5).craft(View(honest, None, n=12, f=3), {})
    assert_sends(sent, [[m[j] - 1.5 * s[j] for j in range(4)]] * 3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_alie_bears_squares_beyond_half_precision(dtype: torch.dtype) -> None:
    honest = (300 * draw(6, 4)).to(dtype)
    m, s = mean(honest.tolist()), std(honest.tolist())
    sent, _ = ALIE(z=0.5).craft(View(honest, None, n=8, f=2), {})
    wanted = torch.tensor([[m[j] - 0.5 * s[j] for j in range(4)]] * 2, dtype=dtype)
    torch.testing.assert_close(sent, wanted, rtol=0, atol=300 * torch.finfo(dtype).eps)


def test_alie_says_when_the_formula_is_no_attack() -> None:
    for f in range(1, 10):
        assert ("no attack" in ALIE().describe(20, f)) == (f <= 2)
        assert (ALIE().strength(20, f) <= 0) == (f <= 2)
    assert "no attack" not in ALIE(z=1.0).describe(20, 1)
    assert ALIE().describe(20, 6).startswith("z = 0.366")


def test_alie_sends_the_row_itself_where_there_is_but_one() -> None:
    honest = draw(1, 3)
    for n, f in [(2, 1), (3, 2), (6, 5)]:
        assert_sends(ALIE().craft(View(honest, None, n, f), {})[0], honest.tolist() * f)


@settings(max_examples=40, deadline=None)
@given(nf=minority, d=st.integers(1, 5), number=st.integers(0, 1000))
def test_ipm_is_minus_c0_mean(nf: tuple[int, int], d: int, number: int) -> None:
    n, f = nf
    honest = draw(n - f, d, number)
    sent, _ = IPM().craft(View(honest, None, n, f), {})
    assert_sends(sent, [[-3 * (n - f) / f * m for m in mean(honest.tolist())]] * f)


def test_ipm_takes_a_given_c0_and_sign_flip_a_scale() -> None:
    honest = draw(9, 4)
    view = View(honest, None, n=12, f=3)
    wanted = [[-0.5 * m for m in mean(honest.tolist())]] * 3
    assert_sends(IPM(c0=0.5).craft(view, {})[0], wanted)
    assert_sends(SignFlip(scale=0.5).craft(view, {})[0], wanted)
    assert_sends(SignFlip().craft(view, {})[0], [[-m for m in mean(honest.tolist())]] * 3)


def test_ga_is_mean_plus_noise_of_variance_30_fresh_for_each_client() -> None:
    honest = draw(5, 20_000)
    sent, _ = GA().craft(View(honest, None, n=8, f=3, generator=torch.Generator().manual_seed(3)), {})
    noise = sent - honest.mean(0)
    assert noise.mean(1).abs().max() < 5 * math.sqrt(30 / 20_000)
    assert ((noise.var(1) / 30 - 1).abs() < 0.05).all()
    correlation = torch.corrcoef(noise) - torch.eye(3, dtype=noise.dtype)
    assert correlation.abs().max() < 0.05
    unit = torch.empty(3, 20_000, dtype=honest.dtype).normal_(generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(noise, math.sqrt(30) * unit)


def test_bf_is_minus_the_gradient_and_lf_the_gradient() -> None:
    honest, own = draw(5, 4), draw(3, 4, 1)
    view = View(honest, own, n=8, f=3)
    assert_sends(BF().craft(view, {})[0], [[-g for g in row] for row in own.tolist()])
    assert_sends(LF().craft(view, {})[0], own.tolist())


def test_lf_turns_labels_round() -> None:
    y = torch.arange(10)
    _, flipped = LF().poison(torch.zeros(10, 1), y, classes=10, k=0)
    assert flipped.tolist() == [9 - label for label in range(10)]
    _, flipped = LF().poison(torch.zeros(3, 1), y[:3], classes=3, k=0)
    assert flipped.tolist() == [2, 1, 0]


@settings(max_examples=40, deadline=None)
@given(h=st.integers(1, 9), d=st.integers(1, 6), warmup=st.integers(1, 4), number=st.integers(0, 1000))
def test_mimic_copies_the_largest_projection_and_keeps_it(h: int, d: int, warmup: int, number: int) -> None:
    attack, f = MIMIC(warmup=warmup), 2
    generator = torch.Generator().manual_seed(number)
    state = attack.start(Setup(h + f, f, d, dtype=torch.float64, generator=generator))
    v, choice = state["direction"].tolist(), 0
    for t in range(warmup + 2):
        honest = draw(h, d, 10 * number + t)
        x = honest.tolist()
        if t < warmup:
            m = mean(x)
            y = [[row[j] - m[j] for j in range(d)] for row in x]
            weights = [dot(row, v) for row in y]
            if h > 1:
                step = [sum(weights[i] * y[i][j] for i in range(h)) for j in range(d)]
                length = math.sqrt(dot(step, step))
                v = [entry / length for entry in step]
            projections = [dot(row, v) for row in y]
            choice = projections.index(max(projections))
        sent, state = attack.craft(View(honest, None, h + f, f), state)
        assert state["choice"] == choice
        assert_sends(sent, [x[choice]] * f)


def test_mimic_works_at_any_scale_and_on_rows_that_coincide() -> None:
    honest = draw(6, 50).float()
    start = MIMIC().start(Setup(8, 2, 50, generator=torch.Generator().manual_seed(0)))
    _, state = MIMIC().craft(View(honest, None, 8, 2), start)
    for scale in (1e-20, 1e15):
        _, scaled = MIMIC().craft(View(honest * scale, None, 8, 2), start)
        assert scaled["choice"] == state["choice"]
    _, still = MIMIC().craft(View(torch.zeros(6, 50), None, 8, 2), start)
    torch.testing.assert_close(still["direction"], start["direction"])


def test_mimic_finds_the_main_direction_of_spread() -> None:
    honest = 0.1 * draw(12, 30)
    honest[4, 0] += 50
    honest[7, 0] -= 50
    for number in range(20):
        generator = torch.Generator().manual_seed(number)
        start = MIMIC().start(Setup(14, 2, 30, dtype=torch.float64, generator=generator))
        _, state = MIMIC().craft(View(honest, None, 14, 2), start)
        assert state["choice"] in (4, 7)


@pytest.mark.parametrize("f", [1, 4, 6, 8, 12])
def test_mixed_deals_its_parts_in_turn_with_the_total_n_and_f(f: int) -> None:
    n, d = 14 + f, 5
    honest, own = draw(14, d), draw(f, d, 1)
    attack = Mixed()
    state = attack.start(Setup(n, f, d, dtype=torch.float64, generator=torch.Generator().manual_seed(2)))
    sent, state = attack.craft(View(honest, own, n, f, torch.Generator().manual_seed(3)), state)
    m, s, z = mean(honest.tolist()), std(honest.tolist()), z_by_formula(n, f)
    noise = draw_noise(len(range(0, f, 6)), d)
    for k in range(f):
        wanted = [
            [m[j] + math.sqrt(30) * noise[k // 6][j] for j in range(d)],
            [m[j] - z * s[j] for j in range(d)],
            [-g for g in own[k].tolist()],
            [-3 * (n - f) / f * entry for entry in m],
            own[k].tolist(),
            honest[int(state["5.choice"])].tolist(),
        ][k % 6]
        assert_sends(sent[k], wanted)
    assert [attack.wants_gradient(k) for k in range(6)] == [False, False, True, False, True, False]
    y = torch.tensor([0, 9])
    assert [attack.poison(y, y, classes=10, k=k)[1].tolist() == [9, 0] for k in range(12)] == [
        k % 6 == 4 for k in range(12)
    ]


def draw_noise(rows: int, d: int) -> Rows:
    """The first draws that GA makes from the generator of the mixed round."""
    noise = torch.empty(rows, d, dtype=torch.float64)
    return noise.normal_(generator=torch.Generator().manual_seed(3)).tolist()  # type: ignore[no-any-return]


def test_non_finite_rows_are_dealt_in_turn() -> None:
    view = View(draw(6, 2), None, n=10, f=4)
    sent = NonFinite().craft(view, {})[0].tolist()
    assert all(math.isnan(entry) for entry in sent[0] + sent[3])
    assert sent[1] == [math.inf, math.inf]
    assert sent[2] == [-math.inf, -math.inf]
    assert NonFinite(value="inf").craft(view, {})[0].tolist() == [[math.inf, math.inf]] * 4
    assert NonFinite(value="nan").craft(view, {})[0].isnan().all()


def test_no_attack_copies_honest_rows_in_turn() -> None:
    honest = draw(3, 2)
    rows = honest.tolist()
    assert_sends(NoAttack().craft(View(honest, None, n=7, f=4), {})[0], [rows[0], rows[1], rows[2], rows[0]])
