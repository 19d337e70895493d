"""What is measured of a model beside its accuracy is what a loop over samples finds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import robagg as ra
from robagg.attacks import Mixed
from robagg.attacks import attacks as registry
from robagg.attacks.base import Attack, State, View

Pair = tuple[Tensor, Tensor]


@pytest.fixture
def clients() -> list[Pair]:
    x = torch.randn(6, 30, 4)
    return [(part, part[:, :3].argmax(1)) for part in x]


@dataclass(frozen=True)
class Wanting(Attack):
    """Wants label 0 for all samples of other labels, moved aside."""

    answer: Any = None

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        return view.send(view.mean), state

    def goal(self, x: Tensor, y: Tensor, *, classes: int) -> Any:
        other = y != 0
        return (x[other] + 1, torch.zeros_like(y[other])) if self.answer is None else self.answer


def train(clients: list[Pair], attack: Attack | str = "ipm", **given: Any) -> ra.Result:
    torch.manual_seed(0)
    settings = {"rounds": 6, "rate": 0.5, "momentum": 0.5, "evaluate_every": 3, "f": 2, "device": "cpu"}
    return ra.train(nn.Sequential(nn.Dropout(0.2), nn.Linear(4, 3)), clients, "cm", attack, **settings | given)


def test_what_is_built_in_is_what_a_loop_finds(clients: list[Pair]) -> None:
    x, y = torch.randn(80, 4), torch.randint(2, (80,))  # no sample of the third class
    result = train(clients, Wanting(), test=(x, y))
    with torch.no_grad():
        chosen = result.model(x).argmax(1)
        wanted: dict[str, Any] = {
            "loss": float(nn.functional.cross_entropy(result.model(x), y)),
            "class_accuracy": [100 * float((chosen[y == c] == c).float().mean()) for c in (0, 1, 2)],
            "worst_client": min(100 * float((result.model(a).argmax(1) == b).float().mean()) for a, b in clients[:4]),
            "attack_success": 100 * float((result.model(x[y != 0] + 1).argmax(1) == 0).float().mean()),
        }
    assert result.metrics.keys() == wanted.keys()
    for name, value in wanted.items():
        assert result.metrics[name] == pytest.approx(value, rel=1e-5, nan_ok=True), name
    assert [t for t, _ in result.losses] == [3, 6] and result.losses[-1][1] == result.metrics["loss"]
    assert "attack_success" not in train(clients, test=(x, y)).metrics, "IPM wants no certain label"
    assert train(clients).metrics == {}


def test_a_users_metric_is_a_function_of_the_model_and_the_test_set(clients: list[Pair]) -> None:
    calls: list[bool] = []

    def measure(model: nn.Module, test: Pair | None) -> Any:
        calls.append(model.training)
        torch.rand(3)  # what it draws is not the run's
        model.train()
        return None if test is None else model(test[0]).softmax(1).max(1).values.mean()

    metrics = {"sure": measure, "list": lambda *_: np.arange(3), "number": lambda *_: 7}
    plain, result = train(clients, test=clients[0]), train(clients, test=clients[0], metrics=metrics)
    assert torch.equal(plain.model[1].weight, result.model[1].weight)
    assert 1 / 3 < result.metrics["sure"] < 1
    assert (result.metrics["list"], result.metrics["number"]) == ([0.0, 1.0, 2.0], 7.0)
    assert calls == [False, False], "before the first round and after the last, in evaluation mode"
    assert train(clients, metrics={"none": lambda _, test: test is None}).metrics == {"none": 1.0}


@pytest.mark.parametrize(
    ("metrics", "kind", "words"),
    [
        ({"loss": lambda *_: 0}, ValueError, "a metric must have a name other than loss, .*, got 'loss'"),
        ([len], TypeError, "metrics must be functions of .model, test. by name, got .<built-in function len>"),
        ({"mine": 3}, TypeError, "metrics must be functions of .model, test. by name, got 3 for 'mine'"),
        ({"mine": lambda *_: "much"}, TypeError, "the metric 'mine' must give a number or a list of numbers, got str"),
        ({"mine": lambda *_: None}, TypeError, "the metric 'mine' must give .*, got None"),
    ],
)
def test_what_is_no_metric_is_refused_before_the_first_round(
    clients: list[Pair], metrics: Any, kind: type[Exception], words: str
) -> None:
    done: list[int] = []
    with pytest.raises(kind, match=words):
        train(clients, test=clients[0], metrics=metrics, progress=lambda t, *_: done.append(t))
    assert done == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (torch.zeros(3), "goal must return samples and a label for each as tensors, or None, got Tensor"),
        ((torch.zeros(3, 4), torch.zeros(2)), "goal must return samples and a label for each .*, got 3 and 2"),
        (
            (torch.zeros(3, 5), torch.zeros(3, dtype=torch.int64)),
            r"goal must return samples that the model takes, .* got samples \(3, 5\) and labels \(3,\): mat1 and mat2",
        ),
        (
            (torch.zeros(3, 4), torch.zeros(3, 2, dtype=torch.int64)),
            r"goal must return .* labels of its classes, got samples \(3, 4\) and labels \(3, 2\): the model must give",
        ),
    ],
)
def test_a_goal_that_is_none_is_refused_before_the_first_round(clients: list[Pair], answer: Any, words: str) -> None:
    done: list[int] = []
    with pytest.raises(ra.PluginError, match=words):
        train(clients, Wanting(answer), test=clients[0], progress=lambda t, *_: done.append(t))
    assert done == []


def test_a_goal_without_samples_is_no_success(clients: list[Pair]) -> None:
    x = torch.randn(9, 4)
    assert "attack_success" not in train(clients, Wanting(), test=(x, torch.zeros(9, dtype=torch.int64))).metrics


def test_a_client_that_cannot_be_scored_does_not_end_a_run_that_is_done(clients: list[Pair]) -> None:
    x, y = clients[0]
    one = [(part, labels) if i else (part[:1], labels[:1]) for i, (part, labels) in enumerate(clients)]
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    settings = {"rounds": 2, "f": 2, "device": "cpu", "statistics": "batch"}
    result = ra.train(model, one, "cm", "ipm", test=(x, y), **settings)
    assert len(result.notes) == 1
    assert result.notes[0].startswith("worst_client leaves out client 0, whose accuracy cannot be measured: a batch")
    rest = ra.train(model, [one[1], *one[1:]], "cm", "ipm", test=(x, y), **settings)
    assert rest.notes == [] and 0 <= result.metrics["worst_client"] <= 100


def test_labels_that_only_the_loss_takes_leave_no_worst_client(clients: list[Pair]) -> None:
    test, pairs = clients[0], [(x, torch.stack([y, y], 1)) for x, y in clients]

    def loss(output: Tensor, y: Tensor) -> Tensor:
        return nn.functional.cross_entropy(output, y[:, 0] if y.ndim == 2 else y)

    result = train(pairs, loss=loss, classes=3, test=test)
    assert result.accuracy is not None and math.isnan(result.metrics["worst_client"])
    assert result.notes[0].startswith("worst_client leaves out client 0, whose accuracy cannot be measured: the model")
    assert result.notes[0].endswith(" (and 3 more)")


def test_mixed_attacks_have_the_goals_of_all_their_parts() -> None:
    registry.add(Wanting)
    try:
        mixed, x, y = Mixed("wanting + ipm + wanting"), torch.randn(3, 4), torch.tensor([0, 1, 2])
        goal = mixed.goal(x, y, classes=3)
        assert goal is not None and torch.equal(goal[0], torch.cat([x[1:] + 1] * 2)) and goal[1].tolist() == [0] * 4
        assert Mixed("ipm+lf").goal(x, y, classes=3) is None
    finally:
        registry.remove("wanting")


def test_a_test_set_with_labels_that_the_loss_does_not_take_has_an_accuracy_alone(clients: list[Pair]) -> None:
    result = train(clients, test=(torch.randn(4, 4), torch.tensor([0, 1, 2, 7])))
    assert result.accuracy is not None and result.losses == [] and "loss" not in result.metrics
    assert result.notes == ["the loss of the test set is not measured: labels must be from 0 to 2, got 0 to 7"]


def test_weights_that_broke_have_no_metrics(clients: list[Pair]) -> None:
    count: list[int] = []
    large = [(1000 * x, y) for x, y in clients]
    result = train(large, test=large[0], rate=1e38, rounds=9, metrics={"one": lambda *_: count.append(1) or 1.0})
    assert result.diverged is not None and result.metrics == {} and count == [1]
