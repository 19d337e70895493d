"""DDP with a robust hook: bad gradients of one rank do not end training, and one decision holds for all buckets."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import Tensor

import robagg as ra
from distributed import programs
from distributed.pool import Pool
from robagg.data import load

STEPS = 150


@pytest.fixture(scope="module")
def digits() -> tuple[Tensor, ...]:
    pytest.importorskip("sklearn")
    data = load("digits")
    return data.train_x.flatten(1), data.train_y, data.test_x.flatten(1), data.test_y


@pytest.fixture(scope="module")
def undisturbed(pool: Pool, digits: tuple[Tensor, ...]) -> float:
    """What plain DDP reaches."""
    return float(pool.run(programs.train, "none", None, digits, STEPS, {})[0]["accuracy"])


@pytest.mark.parametrize(
    ("attack", "rule"), [*((attack, "tq(f=1)") for attack in ("none", "nan", "huge", "minus")), ("huge", "cm(f=1)")]
)
def test_training_survives_a_rank_whose_gradient_is_bad(
    pool: Pool, digits: tuple[Tensor, ...], undisturbed: float, attack: str, rule: str
) -> None:
    ranks = pool.run(programs.train, attack, rule, digits, STEPS, {})
    assert undisturbed > 0.9
    assert ranks[0]["accuracy"] > undisturbed - 0.02
    assert all(torch.equal(rank["weights"], ranks[0]["weights"]) for rank in ranks), "every rank has the same model"
    assert all(rank["doubted"] == ranks[0]["doubted"] for rank in ranks)
    assert ranks[0]["slices"] > 3 * STEPS, "several buckets, each sent and brought back"
    if attack in ("nan", "huge"):
        named = (
            [3] in ranks[0]["doubted"]
            if "cm" in rule and attack == "huge"
            else all(3 in d for d in ranks[0]["doubted"])
        )
        assert named or "cm" in rule


@pytest.mark.parametrize("attack", ["nan", "huge"])
def test_plain_ddp_does_not(pool: Pool, digits: tuple[Tensor, ...], undisturbed: float, attack: str) -> None:
    assert pool.run(programs.train, attack, None, digits, 20, {})[0]["accuracy"] < undisturbed - 0.5


ALONE = ["tq(f=1)", "cm", "krum(f=1)", "nnm >> tq(f=1)", "bucketing >> cm(f=0)", "mean"]


@pytest.mark.parametrize("cap", [0.001, 25.0], ids=["many buckets", "one bucket"])
def test_one_decision_is_made_for_all_buckets(pool: Pool, cap: float) -> None:
    """What the rule makes of the ranks' whole gradients, and says of each rank."""
    rows = torch.randn(4, 5001, generator=programs.seeded(5))
    rows[1, -1] = 1e3  # in one bucket alone
    for rule in ALONE:
        draws = programs.seeded()
        first, second = (ra.parse(rule).explain(rows, generator=draws) for _ in range(2))
        assert ("bucketing" in rule) == (not torch.equal(first.value, second.value))
        answers = pool.run(programs.one_gradient, rule, rows, cap, {})
        for gradient, verdict in answers:
            assert torch.equal(gradient, answers[0][0]) and str(verdict) == str(answers[0][1])
            assert verdict.value is None
        gradient, verdict = answers[0]
        torch.testing.assert_close(gradient, second.value, rtol=1e-5, atol=1e-4)
        assert torch.equal(verdict.rejected, second.rejected)
        torch.testing.assert_close(verdict.distances, second.distances, rtol=1e-4, atol=1e-3)
        torch.testing.assert_close(verdict.weights, second.weights, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rule", ["tq(f=1)", "cm", "nnm >> tq(f=1)"])
def test_a_small_gradient_takes_one_message(pool: Pool, rule: str) -> None:
    small, large = torch.randn(4, 5001, generator=programs.seeded(5)), torch.randn(4, 70_000)
    small[2, 7] = torch.nan  # nor does a broken row take more
    assert pool.run(programs.list_hook_messages, rule, small, 25.0)[0] == 2 * ["all_gather_into_tensor"]
    for rows, cap in ((small, 0.001), (large, 25.0)):  # DDP deals out its buckets after the first of two steps
        assert "all_to_all_single" in pool.run(programs.list_hook_messages, rule, rows, cap)[0]


def test_a_rule_that_remembers_starts_from_the_last_gradient(pool: Pool) -> None:
    """DDP deals the parameters out again after its first step: there it starts from the origin again, once."""
    rows = torch.randn(4, 5001, generator=programs.seeded(5))
    rule = ra.parse("cc(tau=3.0)")
    values, state = [], None
    for _ in range(4):
        verdict, state = rule.step(rows, state)
        values.append(verdict.value)
    for cap in (0.001, 25.0):
        gradient = pool.run(programs.one_gradient, "cc(tau=3.0)", rows, cap, {}, 4)[0][0]
        assert any(torch.allclose(gradient, value, rtol=1e-5, atol=1e-5) for value in values[2:])


def test_ranks_may_weigh_differently(pool: Pool) -> None:
    rows = torch.randn(4, 5001, generator=programs.seeded(5))
    given: dict[str, Any] = {"weights": [1, 2, 1, 1]}
    gradient, verdict = pool.run(programs.one_gradient, "cm", rows, 0.001, given)[0]
    whole = ra.parse("cm").explain(rows, **given)
    torch.testing.assert_close(gradient, whole.value, rtol=1e-5, atol=1e-5)
    assert torch.equal(verdict.shares, whole.shares)


def test_without_verdicts_the_gradient_is_the_same(pool: Pool) -> None:
    rows = torch.randn(4, 5001, generator=programs.seeded(5))
    with_, without = (pool.run(programs.one_gradient, "tq(f=1)", rows, 25.0, {"verdicts": v})[0] for v in (True, False))
    assert torch.equal(with_[0], without[0])
    assert without[1] is None


def test_where_no_quorum_is_left_the_step_ends_with_an_error_on_every_rank(pool: Pool) -> None:
    for said in pool.run(programs.lose_quorum, "tq(f=1)"):
        assert re.search("QuorumError: .* got 0 sound and 4 broken of 4", said)
