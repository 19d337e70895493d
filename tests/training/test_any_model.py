"""Whatever a user's model does in its forward pass, a run computes what a loop over clients would, or says why not."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.parametrizations import spectral_norm

from robagg import parse
from robagg.attacks import parse as parse_attack
from robagg.models import batchnorm
from robagg.training import Federation, Loop, Result, Settings, train
from robagg.training.gradients.dense.engine import Dense
from robagg.training.gradients.looped import Looped
from robagg.training.losses import Loss
from training.dense_twin import compute_by

Clients = list[tuple[Tensor, Tensor]]


@pytest.fixture
def clients() -> Clients:
    x = torch.randn(240, 4)
    return [(x[i::6], (x[i::6, 0] > 0).long()) for i in range(6)]


class Branching(nn.Module):
    """Goes by its whole batch, in a way that a few samples need not show."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 6), nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        return self.last(torch.relu(h) if h.mean() > 0 else h)


class Reading(nn.Module):
    """Looks at numbers, which `vmap` does not let it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.layer(x / max(1.0, x.detach().std().item()))


class Caching(nn.Module):
    """Keeps what it needs for a batch in buffers, of which one is not there at first."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.register_buffer("mask", torch.ones(0, 1))
        self.inner = nn.Module()
        self.inner.register_buffer("mean", None)

    def forward(self, x: Tensor) -> Tensor:
        if len(self.mask) != len(x):
            self.mask = torch.ones(len(x), 1)
        if self.inner.mean is None:
            self.inner.mean = torch.zeros(4)
        if self.training:
            self.inner.mean.lerp_(x.detach().mean(0), 0.1)
        return self.layer((x - self.inner.mean) * self.mask)


def refuse(output: Tensor, y: Tensor) -> Tensor:
    """A loss that looks at numbers."""
    return nn.functional.cross_entropy(output, y) * max(1.0, output.detach().abs().max().item())


def federate(
    model: nn.Module, clients: Clients, engine: str | None = None, loss: Loss = cross_entropy, **settings: object
) -> Federation:
    chosen = Settings(**{"rounds": 12, "batch": 8, "rate": 0.1, "evaluate_every": 4} | settings)  # type: ignore[arg-type]
    federation = Federation(
        model,
        clients,
        parse("cm", f=1),
        parse_attack("ipm"),
        f=1,
        loss=loss,
        classes=2,
        settings=chosen,
    )
    return federation if engine is None else compute_by(engine, federation)


def weights_of(result: Result) -> Tensor:
    return torch.cat([p.detach().flatten() for p in result.model.parameters()])


@pytest.mark.parametrize("model", [Branching, Reading])
def test_a_model_that_goes_by_its_batch_gets_every_client_its_own(model: type[nn.Module], clients: Clients) -> None:
    module = model()
    found = [Loop(federate(module, clients, engine), clients[0]).run() for engine in (None, "loop")]
    assert torch.equal(weights_of(found[0]), weights_of(found[1]))
    assert found[0].notes == []


def test_a_model_that_vmap_does_not_take_trains_on_a_cpu(clients: Clients) -> None:
    model = nn.Sequential(spectral_norm(nn.Linear(4, 6)), nn.ReLU(), nn.Linear(6, 2))
    assert isinstance(federate(model, clients).gradients, Looped)
    assert train(model, clients, "cm", "ipm", f=1, test=clients[0], rounds=3).accuracy is not None
    assert isinstance(federate(nn.Sequential(nn.Linear(4, 2)), clients, loss=refuse).gradients, Looped)
    assert isinstance(federate(nn.Sequential(nn.Linear(4, 2)), clients).gradients, Dense)


def test_a_models_own_buffers_are_taken_up_from_a_checkpoint(clients: Clients) -> None:
    model = nn.Sequential(spectral_norm(nn.Linear(4, 6)), nn.ReLU(), spectral_norm(nn.Linear(6, 2)))
    saved: list[dict[str, object]] = []
    whole = Loop(federate(model, clients), clients[0], checkpoint=saved.append).run()
    again = Loop(federate(model, clients), clients[0]).run(resume=saved[1])
    assert torch.equal(weights_of(whole), weights_of(again))
    for name, buffer in whole.model.named_buffers():
        assert torch.equal(buffer, again.model.get_buffer(name)), name


def test_buffers_that_a_forward_pass_makes_anew_are_taken_up_from_a_checkpoint(clients: Clients) -> None:
    saved: list[dict[str, object]] = []
    model = Caching()
    # On a thread of its own: side by side, clients would work on copies of such a model.
    whole = Loop(federate(copy.deepcopy(model), clients), clients[0], checkpoint=saved.append).run()
    again = Loop(federate(copy.deepcopy(model), clients), clients[0]).run(resume=saved[0])
    assert torch.equal(weights_of(whole), weights_of(again))
    assert torch.equal(whole.model.get_buffer("inner.mean"), again.model.get_buffer("inner.mean"))
    twice = Loop(federate(copy.deepcopy(model), clients), clients[0]).run(resume=saved[0])
    assert torch.equal(weights_of(whole), weights_of(twice)), "a checkpoint is not changed by who takes it up"


def test_a_checkpoint_of_another_model_is_refused(clients: Clients) -> None:
    saved: list[dict[str, object]] = []
    Loop(federate(nn.Linear(4, 2), clients), clients[0], checkpoint=saved.append).run()
    with pytest.raises(RuntimeError, match="size of tensor"):
        Loop(federate(nn.Linear(4, 3), clients), clients[0]).run(resume=saved[0])


@pytest.mark.parametrize("how", [*batchnorm.UPDATES])
def test_running_statistics_move_at_each_layers_own_momentum(how: str, clients: Clients) -> None:
    found = {}
    for paces in ((0.1, 0.1), (0.4, 0.4), (0.1, 0.4)):
        torch.manual_seed(0)
        layers = [nn.BatchNorm1d(4, momentum=pace, affine=False) for pace in paces]
        model = nn.Sequential(*layers, nn.Linear(4, 2))
        federation = federate(model, clients, statistics=how)
        federation.round(0, verdict=False)
        found[paces] = federation.running.chunk(2)
    assert not torch.equal(found[0.1, 0.1][0], found[0.4, 0.4][0])
    torch.testing.assert_close(found[0.1, 0.4][0], found[0.1, 0.1][0])
    torch.testing.assert_close(found[0.1, 0.4][1], found[0.4, 0.4][1])
    with pytest.raises(ValueError, match=r"layer '0' has momentum=None, an average over all batches; give it a number"):
        federate(nn.Sequential(nn.BatchNorm1d(4, momentum=None), nn.Linear(4, 2)), clients)


def test_accuracy_counts_every_label_and_refuses_what_it_cannot_count(clients: Clients) -> None:
    x, y = torch.randn(60, 4, 5), torch.randint(2, (60, 5))
    places = train(nn.Conv1d(4, 2, 1), [(x[i::6], y[i::6]) for i in range(6)], "cm", test=(x, y), rounds=2)
    with torch.no_grad():
        wanted = 100 * float((places.model(x).argmax(1) == y).float().mean())
    assert places.accuracy == pytest.approx(wanted)
    rounds: list[int] = []

    def loss(output: Tensor, y: Tensor) -> Tensor:
        return nn.functional.binary_cross_entropy_with_logits(output.reshape(len(y), -1)[:, 0], y.float())

    for model, test in (
        (nn.Linear(4, 2), (clients[0][0], clients[0][1][:, None])),  # broadcasts to every pair of samples
        (nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)), clients[0]),
        (nn.Linear(4, 1), clients[0]),  # the largest of one score is always the first
    ):
        with pytest.raises(ValueError, match=r"the model must give scores \(N, classes, \.\.\.\)"):
            train(model, clients, "cm", test=test, loss=loss, rounds=2, progress=lambda done, *_: rounds.append(done))
    x, y = clients[0]
    for model, test, words in (
        (nn.Linear(4, 2), (x, y[:30]), "a label for each, got 40 samples and 30 labels"),
        (nn.Linear(4, 2), (x[:0], y[:0]), "a sample at least, and a label for each, got 0 samples and 0 labels"),
        (nn.RNN(4, 2), clients[0], r"got labels \(2,\) and tuple as output"),
    ):
        with pytest.raises(ValueError, match=words):
            train(
                model,
                clients,
                "cm",
                test=test,
                loss=lambda output, y: output[0].sum(),
                rounds=2,
                progress=lambda done, *_: rounds.append(done),
            )
    assert rounds == [], "it is told before the first round"


@pytest.mark.parametrize("engine", ["loop", "vmap"])
def test_local_steps_go_at_the_scheduled_rate(engine: str, clients: Clients) -> None:
    model = nn.Linear(4, 2)
    decayed = federate(model, clients, engine, rate=0.5, schedule=((0.0, 0.1),), rounds=1, local_steps=4)
    small = federate(model, clients, engine, rate=0.05, rounds=1, local_steps=4)
    torch.testing.assert_close(weights_of(Loop(decayed).run()), weights_of(Loop(small).run()))
    still = Loop(federate(model, clients, engine, schedule=((0.0, 0.0),), rounds=2, local_steps=4)).run()
    assert still.diverged is None, "a rate of 0 stands still"


def test_weights_that_break_in_the_last_round_are_told(clients: Clients) -> None:
    result = train(nn.Linear(4, 2), clients, "mean", "ipm(c0=1e30)", f=1, test=clients[0], rounds=1, rate=1e12)
    assert (result.diverged, result.accuracy) == (0, None)
    assert result.notes[-1] == "stopped in round 0: the weights are not finite"


def test_a_run_that_broke_has_no_accuracy_of_an_earlier_round(clients: Clients) -> None:
    large = [(1000 * x, y) for x, y in clients]
    result = Loop(federate(nn.Linear(4, 2), large, rounds=12, schedule=((0.5, 1e39),)), large[0]).run()
    assert result.curve[-1][0] == 4 and result.diverged is not None and result.accuracy is None


def test_labels_may_be_true_or_false(clients: Clients) -> None:
    said = [(x, y.bool()) for x, y in clients]
    model = nn.Linear(4, 2)
    found = [
        train(copy.deepcopy(model), data, "cm", "lf", f=1, test=data[0], rounds=3, seed=1) for data in (clients, said)
    ]
    assert torch.equal(*map(weights_of, found)) and found[0].accuracy == found[1].accuracy
