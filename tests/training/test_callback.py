"""A callback sees each round, and changes none."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import robagg as ra


def train(rule: str = "tq", **given: Any) -> ra.Result:
    torch.manual_seed(0)
    x = torch.randn(9, 30, 4)
    clients = [(part, (part[:, 0] > 0).long()) for part in x]
    model = nn.Sequential(nn.Dropout(0.3), nn.Linear(4, 2))
    settings = {"rounds": 12, "rate": 0.5, "evaluate_every": 5, "device": "cpu"}
    return ra.train(model, clients, rule, "bf(scale=100)", f=2, **settings | given)


@pytest.mark.parametrize("rule", ["tq", "nnm >> cm", "krum"])
def test_it_gets_the_verdict_of_each_round_and_changes_none(rule: str) -> None:
    seen: list[tuple[int, ra.Verdict]] = []

    def look(t: int, model: nn.Module, verdict: ra.Verdict) -> None:
        assert not model.training and not torch.is_grad_enabled()
        seen.append((t, verdict))
        torch.rand(5)
        model.train()

    plain, result = train(rule), train(rule, callback=look, full_trace=True)
    assert torch.equal(plain.model[1].weight, result.model[1].weight)
    assert [t for t, _ in seen] == list(range(12))
    weights = torch.stack([verdict.weights for _, verdict in seen])
    torch.testing.assert_close(weights, torch.tensor(result.trace.weights, dtype=torch.float64))
    assert all(verdict.rule == str(ra.parse(rule, f=2)) for _, verdict in seen)
    assert rule == "nnm >> cm" or all({7, 8} <= {*verdict.not_believed} for _, verdict in seen), "CM gives no reasons"


def test_a_client_that_was_not_asked_is_called_so() -> None:
    seen: list[ra.Verdict] = []
    train("cm(f=0.3)", share=0.6, callback=lambda _, __, verdict: seen.append(verdict))
    for verdict in seen:
        absent = [i for i, reason in enumerate(verdict.reasons) if reason == "not asked in this round"]
        assert len(verdict.reasons) == len(verdict.weights) == 9 and len(absent) == 4
        assert verdict.distances.isnan().nonzero().flatten().tolist() == absent
        assert not verdict.rejected[absent].any() and float(verdict.weights.sum()) == pytest.approx(1)


@pytest.mark.parametrize("name", ["callback", "progress"])
def test_what_is_no_function_is_refused_before_the_first_round(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} must be a function, called after each round, got 5"):
        train(**{name: 5})
