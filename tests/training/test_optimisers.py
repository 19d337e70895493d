"""Optimisers at clients and server do what each client and the server with a torch optimiser of its own would do."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import robagg as ra
from robagg import parse
from robagg.attacks import parse as parse_attack
from robagg.training import Federation, Loop, Settings
from robagg.training.seeds import generator
from training.dense_twin import compute_by

Pair = tuple[Tensor, Tensor]
ROUNDS, B, N, F = 5, 8, 5, 1


@pytest.fixture
def clients() -> list[Pair]:
    x = torch.randn(N, 40, 4, generator=torch.Generator().manual_seed(3))
    return [(part, part[:, :3].argmax(1)) for part in x]


def small_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))


def federate(clients: list[Pair], attack: str = "bf", engine: str | None = None, **given: Any) -> Federation:
    settings = Settings(**{"rounds": ROUNDS, "batch": B, "momentum": 0.0, "rate": 0.05, "evaluate_every": 2} | given)
    against = parse_attack(attack)
    parts = (small_model(), clients, parse("mean", f=F), against)
    federation = Federation(*parts, f=F, loss=cross_entropy, classes=3, settings=settings)
    return federation if engine is None else compute_by(engine, federation)


def weights_of(result: ra.Result) -> Tensor:
    return torch.cat([p.detach().flatten() for p in result.model.parameters()])


def train_plainly(
    clients: list[Pair],
    make_client: Callable[[list[nn.Parameter]], torch.optim.Optimizer],
    make_server: Callable[[list[nn.Parameter]], torch.optim.Optimizer],
    *,
    steps: int = 1,
    decay: float = 0.0,
    rate: Callable[[int], float] = lambda _: 0.05,
) -> Tensor:
    """Every client with a copy of the model and an optimiser of its own, the last one sends minus what it found."""
    model = small_model()
    copies = [copy.deepcopy(model) for _ in clients]
    optimisers = [make_client(list(own.parameters())) for own in copies]
    server = make_server(list(model.parameters()))
    draws = generator(0, "batches")
    first = [group["lr"] for one in (*optimisers[:1], server) for group in one.param_groups]
    for t in range(ROUNDS):
        for one, lr in zip((*optimisers, server), (*first[:1] * N, first[1]), strict=True):
            one.param_groups[0]["lr"] = lr * rate(t) / 0.05
        at = (torch.rand(N, B * steps, generator=draws, dtype=torch.float64) * 40).long()
        sent = []
        for i, (own, optimiser, (x, y)) in enumerate(zip(copies, optimisers, clients, strict=True)):
            own.load_state_dict(model.state_dict())
            for k in range(steps):
                chosen = at[i, k * B : (k + 1) * B]
                optimiser.zero_grad()
                cross_entropy(own(x[chosen]), y[chosen]).backward()
                for p in own.parameters():
                    assert p.grad is not None
                    p.grad += decay * p.detach()
                optimiser.step()
            gone = [(p - q).detach() / rate(t) for p, q in zip(model.parameters(), own.parameters(), strict=True)]
            sent.append(gone if i < N - F else [-part for part in gone])
        for p, *rows in zip(model.parameters(), *sent, strict=True):
            p.grad = torch.stack(rows).mean(0)
        server.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def sgd(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.05)


@pytest.mark.parametrize(("engine", "steps"), [("loop", 1), ("vmap", 1), ("dense", 1), (None, 1), (None, 3)])
def test_every_client_has_an_optimiser_of_its_own(clients: list[Pair], engine: str | None, steps: int) -> None:
    federation = federate(clients, engine=engine, client_optimiser="adamw(weight_decay=0.2)", local_steps=steps)
    wanted = train_plainly(clients, lambda p: torch.optim.AdamW(p, lr=0.05, weight_decay=0.2), sgd, steps=steps)
    torch.testing.assert_close(weights_of(Loop(federation).run()), wanted, rtol=1e-4, atol=1e-5)


def test_the_servers_optimiser_takes_the_aggregate_for_its_gradient(clients: list[Pair]) -> None:
    federation = federate(clients, server_optimiser="adam(lr=0.01, betas=(0.5, 0.9))", schedule=((2, 0.5),))
    wanted = train_plainly(
        clients,
        sgd,
        lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.5, 0.9)),
        rate=lambda t: 0.05 * (0.5 if t >= 2 else 1.0),
    )
    torch.testing.assert_close(weights_of(Loop(federation).run()), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("engine", ["loop", "vmap", "dense"])
def test_weight_decay_pulls_every_gradient(clients: list[Pair], engine: str, steps: int) -> None:
    federation = federate(clients, engine=engine, weight_decay=0.3, local_steps=steps)
    wanted = train_plainly(clients, sgd, sgd, steps=steps, decay=0.3)
    torch.testing.assert_close(weights_of(Loop(federation).run()), wanted, rtol=1e-4, atol=1e-5)


def test_plain_descent_as_an_optimiser_is_the_default(clients: list[Pair]) -> None:
    plain = federate(clients, local_steps=2, schedule="linear")
    named = federate(clients, local_steps=2, schedule="linear", client_optimiser="sgd", server_optimiser="sgd")
    torch.testing.assert_close(weights_of(Loop(plain).run()), weights_of(Loop(named).run()), rtol=1e-5, atol=1e-6)


def test_a_factory_may_make_groups_of_parameters(clients: list[Pair]) -> None:
    made: list[list[torch.Size]] = []

    def make(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        made.append([p.shape for p in parameters])
        groups = [{"params": parameters[:2], "lr": 0.0}, {"params": parameters[2:], "lr": 0.1}]
        return torch.optim.RMSprop(groups)

    result = Loop(federate(clients, client_optimiser=make)).run()
    before, after = ([p.detach() for p in m.parameters()] for m in (small_model(), result.model))
    assert [torch.equal(a, b) for a, b in zip(before, after, strict=True)] == [True, True, False, False]
    assert made == [[p.shape for p in before]] * N, "one for each client, BF's own too"


@pytest.mark.parametrize("share", [1.0, 0.6])
def test_a_run_with_optimisers_goes_on_from_a_checkpoint(clients: list[Pair], share: float) -> None:
    given = {"client_optimiser": "adam", "server_optimiser": "sgd(momentum=0.9)", "share": share}
    saved: list[dict[str, Any]] = []
    whole = Loop(federate(clients, **given), clients[0], checkpoint=saved.append).run()
    for _ in range(2):
        again = Loop(federate(clients, **given), clients[0]).run(resume=saved[0])
        assert torch.equal(weights_of(whole), weights_of(again))
    assert [t for t, _ in again.losses] == [2, 4, 5] and again.losses == whole.losses


def test_a_rate_of_zero_stands_still(clients: list[Pair]) -> None:
    federation = federate(clients, client_optimiser="adam", schedule=((0.0, 0.0),))
    before = federation.w.clone()
    assert Loop(federation).run().diverged is None and torch.equal(federation.w, before)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"client_optimiser": "adan"}, "unknown optimiser 'adan' .did you mean 'adam'"),
        ({"client_optimiser": "lbfgs"}, "unknown optimiser 'lbfgs'"),
        ({"client_optimiser": "adam(beta=3)"}, "an optimiser must be one that torch.optim makes, got 'adam.beta=3.'"),
        ({"server_optimiser": "adam(lr=-1)"}, "must be one that torch.optim makes, .*Invalid learning rate: -1"),
        ({"server_optimiser": 3}, "server_optimiser must be a name in torch.optim or a function of parameters, got 3"),
        ({"client_optimiser": "adam", "momentum": 0.9}, "momentum must be 0 where clients have an optimiser.*got 0.9"),
        ({"weight_decay": -0.1}, "weight_decay must be a number from 0 on, got -0.1"),
        ({"client_optimizer": "adam"}, "unknown setting 'client_optimizer' .did you mean 'client_optimiser'"),
    ],
)
def test_what_is_no_optimiser_is_a_sentence(clients: list[Pair], given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ra.train(small_model(), clients, "mean", **{"rounds": 1, "momentum": 0.0} | given)


def test_a_factory_must_make_an_optimiser(clients: list[Pair]) -> None:
    with pytest.raises(TypeError, match=r"an optimiser must be a torch\.optim\.Optimizer, got None of"):
        ra.train(small_model(), clients, "mean", rounds=1, server_optimiser=lambda _: None)
