"""The theory against measurement: what holds, on random and on searched stacks; what does not, by example."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from robagg import CC, CM, NNM, TQ, Huber, theory
from robagg.worst_case import walk
from robagg.worst_case.search import Shape, search

EVERY_F = [(n, f) for n in (4, 7, 11, 20) for f in range(1, (n - 1) // 2 + 1)]


def draw(count: int, n: int, d: int = 3, seed: int = 0) -> Tensor:
    """Heavy-tailed stacks, Byzantine rows (the last ones) anywhere from among the honest to far away."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(count, n, d, generator=g, dtype=torch.float64)
    return x * torch.randn(count, n, 1, generator=g, dtype=torch.float64).mul(1.2).exp()


def measure_honest(x: Tensor, h: int) -> tuple[Tensor, Tensor]:
    centre = x[..., :h, :].mean(dim=-2)
    return centre, (x[..., :h, :] - centre[..., None, :]).square().sum(dim=(-2, -1)) / h


def share_of_step_bound(points: Tensor, n: int, f: int) -> Tensor:
    """Error after one step of TQ with the true tau from the last point, as a share of the bound that holds."""
    x, v = points[:, :n], points[:, n]
    centre, variance = measure_honest(x, n - f)
    after = (walk(TQ(f=f), x, n - f, start=v, tau="true", steps=1) - centre).norm(dim=1)
    delta, distance = f / n, (v - centre).norm(dim=1)
    bound = delta * distance + 2 * (delta * (1 - delta) * (distance.square() + variance)).sqrt()
    assert math.isclose(bound[0], theory.step_bound(delta, float(distance[0]), float(variance[0])))
    return after / bound


def ratio_from_median(x: Tensor, f: int, tolerance: int | None = None) -> Tensor:
    h = x.shape[1] - f
    centre, variance = measure_honest(x, h)
    return (walk(TQ(f=tolerance or f), x, h, tau="true") - centre).square().sum(dim=1) / variance


@pytest.mark.parametrize(("n", "f"), EVERY_F)
def test_the_step_bound_with_factor_two_holds_on_random_and_on_searched_stacks(n: int, f: int) -> None:
    assert share_of_step_bound(draw(500, n + 1), n, f).max() <= 1 + 1e-9
    shape = Shape(n - f, f, 2, reach=30.0)
    g = torch.Generator().manual_seed(1)
    _, found, _ = search(lambda points: share_of_step_bound(points, n, f), shape, 3000, g)
    assert 0.3 < found[0] <= 1 + 1e-9


@pytest.mark.parametrize(("n", "f"), EVERY_F)
def test_the_kappa_inequality_holds_from_the_median_with_the_true_tau_and_ten_steps(n: int, f: int) -> None:
    kappa = theory.kappa_tq(f / n)
    assert ratio_from_median(draw(500, n), f).max() <= kappa
    g = torch.Generator().manual_seed(2)
    _, found, _ = search(lambda x: ratio_from_median(x, f), Shape(n - f, f, 2), 3000, g)
    assert theory.least_kappa(n, f) * 0.5 < found[0] <= kappa


def test_the_printed_step_bound_is_exceeded_by_an_honest_row_that_tau_cuts() -> None:
    n, f, h = 20, 2, 18
    honest = torch.tensor([[-1.0]] + [[1 / 17]] * 17, dtype=torch.float64)
    variance = float(honest.square().mean())
    tau = theory.tau(n, f, distance=0.0, variance=variance)
    assert tau < 1  # the honest row at -1 is cut
    x = torch.cat([honest, torch.full((f, 1), tau, dtype=torch.float64)])
    after = abs(float(walk(TQ(f=f), x, h, start=torch.zeros(1), tau="true", steps=1)))
    assert after / theory.step_bound_printed(f / n, 0.0, variance) == pytest.approx(1.687, abs=1e-3)
    assert after <= theory.step_bound(f / n, 0.0, variance)


def test_the_kappa_inequality_fails_from_a_far_start_near_one_half() -> None:
    n, f, h, start = 20, 9, 11, 29.0
    honest = torch.tensor([[-1.0]] + [[0.1]] * 10, dtype=torch.float64)
    honest /= honest.square().mean().sqrt()
    tau = theory.tau(n, f, distance=start, variance=1.0)
    x = torch.cat([honest, torch.full((f, 1), start + 0.985 * tau, dtype=torch.float64)])
    steps = theory.steps_needed(f / n, start, 1.0)
    for k in (steps, 100):  # nor do more steps help: Byzantine rows and start stay there
        v = walk(TQ(f=f), x, h, start=torch.tensor([start]), tau="true", steps=k)
        assert float(v.square()) > 2 * theory.kappa_tq(f / n)
    assert float(walk(TQ(f=f), x, h, tau="true").square()) < 0.01 * theory.kappa_tq(f / n)  # from the median it is well


def test_the_estimated_tau_is_not_covered_for_small_f() -> None:
    # Eleven of twenty rows coincide, so the MAD is 0 and TQ is the median.
    x = torch.tensor([[0.0]] * 10 + [[1.0]] * 9 + [[0.0]], dtype=torch.float64)
    centre, variance = measure_honest(x, 19)
    assert TQ(f=1)(x) == CM()(x) == 0
    assert float((centre**2 / variance)[0]) == pytest.approx(0.9)
    assert theory.kappa_tq(1 / 20) < 0.36


def huber_rest(honest: Tensor, byzantine: Tensor) -> tuple[Tensor, float]:
    """Where Huber rests with the true tau, and s as seen from there."""
    h, f = len(honest), len(byzantine)
    v = walk(Huber(f=f), torch.cat([honest, byzantine]), h, tau="true", steps=300)
    return v, float(torch.nn.functional.normalize(byzantine - v, dim=1).mean(dim=0).norm())


@pytest.mark.parametrize("seed", range(5))
def test_huber_has_the_bias_of_theorem_2_where_our_condition_holds(seed: int) -> None:
    g = torch.Generator().manual_seed(seed)
    checked = 0
    for f in range(1, 5):
        n = 20
        honest = torch.randn(n - f, 4, generator=g, dtype=torch.float64)
        way = torch.randn(1, 4, generator=g, dtype=torch.float64)
        byzantine = 1e3 * (way + 0.6 * seed / 5 * torch.randn(f, 4, generator=g, dtype=torch.float64))
        centre, variance = measure_honest(honest, n - f)
        v, s = huber_rest(honest, byzantine)
        farthest = float((honest - centre).norm(dim=1).max())
        if f / n <= theory.bias_condition(s, farthest, float(variance)):
            checked += 1
            bias = float((v - centre).square().sum())
            assert bias == pytest.approx(theory.huber_bias(f / n, s, float(variance)), rel=1e-6)
    assert checked >= 2


@pytest.mark.parametrize("f", [2, 3])
def test_between_the_two_conditions_of_theorem_2_the_bias_is_another(f: int) -> None:
    h = 20 - f
    honest = torch.tensor([[-1.0]] + [[1 / (h - 1)]] * (h - 1), dtype=torch.float64)
    variance = float(honest.square().mean())
    delta = f / 20
    assert theory.bias_condition(1.0, 1.0, variance) < delta < theory.bias_condition(1.0, 1.0, variance, printed=True)
    v, s = huber_rest(honest, torch.full((f, 1), 1e3, dtype=torch.float64))
    assert s == 1
    excess = float(v.square()) / theory.huber_bias(delta, s, variance)
    assert excess > 1.1


@pytest.mark.parametrize("iterations", [1, 10])
def test_huber_with_a_given_tau_and_start_is_centered_clipping(iterations: int) -> None:
    x, start, tau = draw(1, 12, 5, seed=3)[0], torch.ones(5, dtype=torch.float64), 1.7
    v = start.clone()
    for _ in range(iterations):  # a step down the Huber loss
        point = v.clone().requires_grad_()
        r = (x - point).norm(dim=1)
        loss = torch.where(r <= tau, r.square() / 2, tau * r - tau**2 / 2).sum()
        (slope,) = torch.autograd.grad(loss, point)
        v = v - slope / len(x)
    assert torch.allclose(CC(tau=tau, iterations=iterations).step(x, start)[0].value, v)
    centre, variance = measure_honest(x, 9)
    given = theory.tau(12, 3, float((start - centre).norm()), float(variance))
    one = walk(Huber(f=3), x, 9, start=start, tau="true", steps=1)
    assert torch.allclose(CC(tau=given, iterations=1).step(x, start)[0].value, one)


@pytest.mark.parametrize("f", [1, 3])
def test_a_rule_with_a_larger_tolerance_stays_robust_and_kappa_grows(f: int) -> None:
    n = 11
    kappas = [theory.kappa(f"tq(f={tolerance})", n, f) for tolerance in range(f, 6)]
    assert kappas == sorted(kappas)
    for tolerance, kappa in zip(range(f, 6), kappas, strict=True):
        assert ratio_from_median(draw(300, n), f, tolerance).max() <= kappa
        g = torch.Generator().manual_seed(4)
        _, found, _ = search(
            lambda x, tolerance=tolerance: ratio_from_median(x, f, tolerance), Shape(n - f, f, 2), 2000, g
        )
        assert found[0] <= kappa


def test_example_1_moves_huber_and_not_tq() -> None:
    h, f, L, G = 12, 5, 2.0, 3.0
    n = h + f
    w, way = torch.tensor([1.0, -2.0], dtype=torch.float64), torch.tensor([0.6, 0.8], dtype=torch.float64)
    q = 2 * G / L * way
    honest = torch.cat([(L * w).expand(h // 2, 2), (L * w - L * q).expand(h // 2, 2)])
    centre, variance = measure_honest(honest, h)
    assert float(variance) == pytest.approx(G**2)
    tau = theory.tau(n, f, 0.0, G**2)
    angles = torch.linspace(0, 2, f, dtype=torch.float64)
    ways = torch.stack([angles.cos(), angles.sin()], dim=1)
    x = torch.cat([honest, centre + 1.5 * tau * ways])
    s = float(ways.mean(dim=0).norm())
    moved = walk(Huber(f=f), x, h, start=centre, tau="true", steps=1) - centre
    assert float(moved.norm()) == pytest.approx(theory.huber_move(f / n, tau, s))
    stayed = walk(TQ(f=f), x, h, start=centre, tau="true", steps=1) - centre
    assert float(stayed.norm()) == pytest.approx(0, abs=1e-12)


@dataclass(frozen=True)
class Own(CM):
    """A rule of a user's own, made from another."""


def test_kappas_are_those_of_the_comparison_table() -> None:
    n, f = 20, 5
    table = {"krum": 9.0, "tm": 4.5, "cm": 9.0, "rfa": 9.0, "tq": 1 / (1 - math.sqrt(0.75))}
    table |= {"huber": table["tq"], "cc": table["tq"]}
    for rule, value in table.items():
        assert theory.kappa(rule, n, f) == pytest.approx(value)
    for rule in ("mean", "mca", "multikrum", "bucketing >> tq", "tq(f=4)", "nnm(f=3) >> cm"):
        assert theory.kappa(rule, n, f) is None
    assert theory.kappa("cm(f=0)", n, f) == 9.0  # CM does not go by f
    assert theory.kappa(Own(f=5), n, f) is None, "what derives from a rule may do anything"
    assert theory.kappa(NNM(f=5) >> CM(f=5), n, f) == pytest.approx(8 / 3 * 10)


@pytest.mark.parametrize("delta", [0.02, 0.1, 4 / 29, 0.3, 0.45])
def test_the_formulas_agree_with_each_other(delta: float) -> None:
    a, kappa = theory.contraction(delta), theory.kappa_tq(delta)
    assert kappa == pytest.approx(4 * delta * (1 - delta) / (1 - a) ** 2)
    for far in (0.5, 50.0):
        steps = theory.steps_needed(delta, far, 2.0)
        assert theory.bound_after(steps, delta, far, 2.0) ** 2 <= kappa * 2.0 * (1 + 1e-9)
    limit = theory.kappa_in_the_limit(delta)
    if delta < 0.2:
        assert theory.step_bound(delta, math.sqrt(limit), 1.0) == pytest.approx(math.sqrt(limit))
        assert (limit <= kappa * (1 + 1e-9)) == (delta <= 4 / 29)
    for other in (0.1, 1.0, 30.0):
        assert theory.nnm_improves(other, delta) == (theory.kappa_behind_nnm(other, delta) < other)


def test_the_condition_of_theorem_2_is_where_the_farthest_honest_row_is_on_tau() -> None:
    for s in (0.3, 0.8, 1.0):
        delta = theory.bias_condition(s, farthest=2.5, variance=1.7)
        D = math.sqrt(theory.huber_bias(delta, s, 1.7))
        tau = math.sqrt((1 - delta) / delta * (D**2 + 1.7))
        assert tau == pytest.approx(D + 2.5)


def test_theorem_5_has_its_step_size_momentum_and_bound() -> None:
    given: dict[str, Any] = {"L": 2.0, "gap": 3.0, "sigma2": 4.0, "kappa": 0.5, "h": 10, "b": 8, "T": 10_000}
    step = theory.step_size(**given)
    assert step == pytest.approx(math.sqrt(3 * 8 * 10 / (16 * 4 * 2 * 10_000)) / 8)
    assert theory.momentum(L=2.0, step=step) == pytest.approx(math.sqrt(1 - 48 * step))
    assert theory.step_size(**given | {"T": 1}) == 1 / 48 == theory.step_size(**given | {"sigma2": 0.0})
    assert theory.momentum(L=2.0, step=1 / 48) == 0
    bound = theory.gradient_bound(**given, G2=0.1)
    assert bound == pytest.approx(144 * math.sqrt(1.6 * 3 * 2 * 4 / 80_000) + 1.8)
    assert theory.least_gradient(0.25, 0.8) == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: theory.kappa("tq", 10, 5), "n must be at least 2f\\+1 and f at least 0, got n=10, f=5"),
        (lambda: theory.kappa_tq(0.5), "from 0 to below 0.5, got 0.5"),
        (lambda: theory.kappa_tq(math.nan), "from 0 to below 0.5, got nan"),
        (lambda: theory.huber_bias(0.1, 1.2), "s must be a number from 0 to 1, got 1.2"),
        (lambda: theory.step_bound(0.1, -1.0, 1.0), "distance must be a finite number >= 0, got -1.0"),
        (lambda: theory.steps_needed(0.1, 1.0, 0.0), "variance must be a finite number > 0, got 0.0"),
        (lambda: theory.bias_condition(1.0, 0.5, 1.0), "farthest must be at least the root of variance"),
        (lambda: theory.momentum(L=1.0, step=0.5), "at most 1/\\(24 L\\) = 0.04167, got 0.5"),
    ],
)
def test_numbers_that_make_no_sense_are_refused_with_a_sentence(call: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()


def test_what_is_no_number_is_refused() -> None:
    for call in (lambda: theory.kappa("tq", 10.0, 2), lambda: theory.kappa_tq("a"), lambda: theory.kappa_cm(True)):  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"must be a (whole )?number"):
            call()
