"""Models with one logit have an accuracy by its sign, models of measured values have a loss."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import robagg as ra
from robagg.lab import Run, execute
from robagg.splits import Dirichlet, OneLabel
from robagg.tasks import tasks
from robagg.training.losses import LOSSES

Pair = tuple[Tensor, Tensor]


def make_clients(measured: bool) -> list[Pair]:
    x = torch.randn(6, 40, 4, generator=torch.Generator().manual_seed(1))
    y = x.sum(2) if measured else (x.sum(2) > 0).long()
    return [*zip(x, y, strict=True)]


def small_model(out: nn.Module | None = None) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1), *([] if out is None else [out]))


def train(model: nn.Module, clients: list[Pair], **given: Any) -> ra.Result:
    settings = {"rounds": 30, "rate": 0.3, "momentum": 0.5, "evaluate_every": 10, "f": 1, "attack": "ipm"}
    return ra.train(model, clients, "tq", **settings | {"test": clients[0], "device": "cpu"} | given)


@pytest.mark.parametrize("cast", [Tensor.long, Tensor.float, Tensor.bool, lambda y: y[:, None].float()])
def test_one_logit_has_an_accuracy_by_its_sign(cast: Any) -> None:
    clients = [(x, cast(y)) for x, y in make_clients(measured=False)]
    result = train(small_model(), clients, loss="bce")
    with torch.no_grad():
        right = (result.model(clients[0][0])[:, 0] > 0) == (clients[0][1].flatten() > 0)
    assert result.accuracy == pytest.approx(100 * float(right.float().mean())) and result.accuracy > 85
    assert len(result.metrics["class_accuracy"]) == 2 and result.metrics["worst_client"] > 70  # type: ignore[arg-type]


@pytest.mark.parametrize("loss", [nn.BCEWithLogitsLoss(), functional.binary_cross_entropy_with_logits])
def test_torchs_own_losses_of_logits_are_known(loss: Any) -> None:
    clients = [(x, y.float()) for x, y in make_clients(measured=False)]
    own, named = (train(small_model(nn.Flatten(0)), clients, loss=one) for one in (loss, "bce"))
    assert own.accuracy == named.accuracy is not None
    torch.testing.assert_close(own.metrics["loss"], named.metrics["loss"])


def test_flipped_labels_of_one_logit_are_the_other_one() -> None:
    clients = make_clients(measured=False)
    flipped = [*clients[:5], (clients[5][0], 1 - clients[5][1])]
    found = [train(small_model(), data, attack="lf", loss="bce", f=f) for data, f in ((clients, 1), (flipped, 0))]
    assert found[0].accuracy is not None and found[1].accuracy is not None


@pytest.mark.parametrize(
    ("loss", "plain"),
    [
        ("mse", functional.mse_loss),
        ("l1", functional.l1_loss),
        ("huber", functional.huber_loss),
        (nn.HuberLoss(delta=0.1), nn.HuberLoss(delta=0.1)),
    ],
)
def test_measured_values_have_a_loss_and_no_accuracy(loss: Any, plain: Any) -> None:
    clients = make_clients(measured=True)
    out = None if isinstance(loss, str) else nn.Flatten(0)  # a function gets what the model gives
    result = train(small_model(out), clients, loss=loss, metrics={"mine": lambda model, test: len(test[1])})
    x, y = clients[0]
    with torch.no_grad():
        wanted = float(plain(result.model(x).flatten(), y))
    assert (result.accuracy, result.curve, result.metrics.keys()) == (None, [], {"loss", "mine"})
    assert [t for t, _ in result.losses] == [10, 20, 30]
    assert result.metrics["loss"] == result.losses[-1][1] == pytest.approx(wanted, rel=1e-5)
    assert result.losses[-1][1] < result.losses[0][1]


@pytest.mark.parametrize("engine", ["loop", "vmap", "dense"])
@pytest.mark.parametrize("loss", ["bce", "mse", "huber"])
def test_every_engine_computes_these_losses(loss: str, engine: str) -> None:
    from robagg.attacks import parse as parse_attack
    from robagg.training import Federation, Settings
    from training.dense_twin import compute_by

    clients = make_clients(measured=loss != "bce")
    chosen = Settings(rounds=1, batch=8, momentum=0.0, rate=0.1)
    parts = (small_model(), clients, ra.parse("mean", f=1), parse_attack("ipm"))
    federation = Federation(*parts, f=1, loss=LOSSES[loss], classes=2, settings=chosen)
    assert federation.gradients.note is None
    federation = compute_by(engine, federation)
    source, w = copy.deepcopy(federation.random["batches"].get_state()), federation.w.clone()
    federation.round(0, verdict=False)
    federation.random["batches"].set_state(source)
    at = federation.shards.draw(8, federation.random["batches"])
    functions = {"bce": functional.binary_cross_entropy_with_logits, "mse": functional.mse_loss}
    function = functions.get(loss, functional.huber_loss)
    for i in range(5):
        value = function(
            federation.flat.forward(w.requires_grad_(), federation.shards.x[at[i]])[:, 0],
            federation.shards.y[at[i]].float(),
        )
        torch.testing.assert_close(federation.sent[i], torch.autograd.grad(value, w)[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "change", "given", "words"),
    [
        (
            nn.Linear(4, 2),
            Tensor.float,
            {"loss": "mse"},
            r"one number for each label, got outputs \(2, 2\) for \(2,\)",
        ),
        (nn.Linear(4, 1), lambda y: 2 * y, {"loss": "bce"}, "labels of client 0 must be from 0 to 1.*got 0 to 2"),
        (
            nn.Linear(4, 1),
            Tensor.long,
            {"loss": partial(lambda output, y: output.mean())},
            "one logit goes with loss='bce'",
        ),
        (
            nn.Linear(4, 1),
            Tensor.long,
            {"loss": "hinge"},
            "loss must be one of cross_entropy, nll, bce, mse, l1, huber",
        ),
        (nn.Linear(4, 1), Tensor.float, {"loss": "mse", "attack": "lf"}, "labels must be integers, got torch.float32"),
    ],
)
def test_what_does_not_go_together_is_a_sentence(model: nn.Module, change: Any, given: Any, words: str) -> None:
    clients = [(x, change(y)) for x, y in make_clients(measured=False)]
    with pytest.raises(ValueError, match=words):
        train(model, clients, **given)


@dataclass(frozen=True)
class Slopes(ra.Task):
    """Measured values, as a task of a user's own."""

    n: ClassVar[int] = 6
    loss: ClassVar[str] = "huber"
    settings: ClassVar[ra.Settings] = ra.Settings(rounds=20, rate=0.3, momentum=0.5)

    def load(self, root: str | Path | None = None) -> ra.Dataset:
        x = torch.randn(300, 4, generator=torch.Generator().manual_seed(1))
        return ra.Dataset("slopes", x[:200], x[:200].sum(1), x[200:], x[200:].sum(1), classes=1)

    def build(self, dataset: ra.Dataset, seed: int) -> nn.Module:
        return small_model().double()


def test_a_task_may_be_a_regression() -> None:
    tasks.add(Slopes)
    try:
        record = execute(Run(rule="tq", attack="ipm", task="slopes", f=1), device="cpu")
    finally:
        tasks.remove("slopes")
    assert (record["status"], record["accuracy"], record["curve"]) == ("ok", None, []), record
    assert record["metrics"].keys() == {"loss"} and 0 < record["metrics"]["loss"] < 1


@pytest.mark.parametrize("split", [Dirichlet(), OneLabel()])
def test_splits_by_label_refuse_measured_values(split: Any) -> None:
    with pytest.raises(ValueError, match=r"labels must be one integer per sample, got torch\.float32"):
        split.split(torch.randn(30), n=4, f=1, generator=torch.Generator())
