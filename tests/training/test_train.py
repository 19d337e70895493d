"""What a run promises: it is the paper's algorithm, it repeats to the last digit, and no client can end it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch import Tensor, nn

from robagg import PluginError, parse
from robagg.attacks import parse as parse_attack
from robagg.attacks.base import Attack, Setup, State, View
from robagg.models import batchnorm, build
from robagg.splits import Rho
from robagg.training import Federation, Loop, Result, Settings, train, unpack_weights
from robagg.training.gradients.layout import channels_last
from robagg.training.seeds import generator
from training.dense_twin import compute_by
from training.twin import train_plainly

N, F, CLASSES = 9, 3, 4


@pytest.fixture(scope="module")
def clients() -> list[tuple[Tensor, Tensor]]:
    g = torch.Generator().manual_seed(7)
    centres = 2 * torch.randn(CLASSES, 6, generator=g)
    y = torch.randint(CLASSES, (360,), generator=g)
    x = centres[y] + torch.randn(360, 6, generator=g)
    shards = Rho(rho=0.5).split(y, N, F, generator=g)
    return [(x[at], y[at]) for at in shards]


def small_model(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, CLASSES))


def federate(
    clients: Sequence[tuple[Tensor, Tensor]],
    rule: str,
    attack: str | Attack,
    f: int = F,
    engine: str | None = None,
    model: nn.Module | None = None,
    classes: int = CLASSES,
    **settings: object,
) -> Federation:
    chosen = Settings(**({"rounds": 6, "batch": 8, "momentum": 0.9, "rate": 0.1} | settings))  # type: ignore[arg-type]
    federation = Federation(
        model or small_model(),
        clients,
        parse(rule, f=f),
        parse_attack(attack) if isinstance(attack, str) else attack,
        f=f,
        loss=nn.functional.cross_entropy,
        classes=classes,
        settings=chosen,
    )
    return federation if engine is None else compute_by(engine, federation)


def weights_of(result: Result) -> Tensor:
    return torch.cat([p.detach().flatten() for p in result.model.parameters()])


@pytest.mark.parametrize("engine", ["loop", "vmap", "dense"])
@pytest.mark.parametrize(
    ("rule", "attack", "steps"),
    [
        ("tq", "ipm", 1),
        ("mean", "none", 1),
        ("cm", "bf", 1),
        ("nnm >> huber", "alie", 1),
        ("cc(tau=1.0)", "mimic", 1),
        ("bucketing >> tm", "lf", 1),
        ("krum", "mixed", 1),
        ("rfa", "ga", 1),
        ("tq", "signflip", 3),
    ],
)
def test_training_is_the_papers_algorithm(
    clients: list[tuple[Tensor, Tensor]], rule: str, attack: str, steps: int, engine: str
) -> None:
    federation = federate(clients, rule, attack, engine=engine, local_steps=steps, full_trace=True)
    result = Loop(federation).run()
    wanted, losses = train_plainly(
        small_model(),
        clients,
        parse(rule, f=F),
        parse_attack(attack),
        f=F,
        classes=CLASSES,
        rounds=6,
        batch=8,
        momentum=0.9,
        rate=0.1,
        local_steps=steps,
    )
    torch.testing.assert_close(weights_of(result), wanted, rtol=1e-4, atol=1e-5)
    assert result.trace.loss == pytest.approx(losses, rel=1e-4)


@pytest.mark.parametrize("share", [1.0, 0.6])
def test_the_same_run_twice_is_equal_to_the_last_digit(clients: list[tuple[Tensor, Tensor]], share: float) -> None:
    first, second = (
        Loop(federate(clients, "bucketing >> tq(f=0.2)", "ga", share=share), clients[0]).run() for _ in range(2)
    )
    assert torch.equal(weights_of(first), weights_of(second))
    assert first.curve == second.curve
    torch.testing.assert_close(
        torch.tensor(first.trace.weights), torch.tensor(second.trace.weights), rtol=0, atol=0, equal_nan=True
    )


def test_a_run_leaves_the_model_and_the_global_generator_as_they_were(clients: list[tuple[Tensor, Tensor]]) -> None:
    model = small_model()
    before = [p.clone() for p in model.parameters()]
    torch.manual_seed(3)
    wanted = torch.rand(3)
    torch.manual_seed(3)
    train(model, clients, "tq", "ipm", f=F, rounds=2)
    assert torch.equal(torch.rand(3), wanted)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_a_run_resumed_from_a_checkpoint_equals_one_that_was_never_stopped(
    clients: list[tuple[Tensor, Tensor]],
) -> None:
    settings = {"rounds": 9, "evaluate_every": 3, "share": 0.8}
    saved: list[dict[str, object]] = []
    whole = Loop(federate(clients, "tq(f=0.3)", "mimic", **settings), clients[0], checkpoint=saved.append).run()
    again = Loop(federate(clients, "tq(f=0.3)", "mimic", **settings), clients[0]).run(resume=saved[0])
    assert torch.equal(weights_of(whole), weights_of(again))
    assert whole.curve == again.curve
    assert whole.trace.rounds == again.trace.rounds


@dataclass(frozen=True)
class Growing(Attack):
    """Sends what it remembers, which grows each round; its names are those of a run's own tensors."""

    named: ClassVar[bool] = True

    def start(self, setup: Setup) -> State:
        return {name: setup.zeros(setup.d) for name in ("w", "sent", "last", "running")} if self.named else {}

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        grown = {name: state.get(name, view.mean) + view.mean for name in ("w", "sent", "last", "running")}
        return view.send(-grown["w"]), grown


def test_an_attack_may_give_its_memory_any_names(clients: list[tuple[Tensor, Tensor]]) -> None:
    settings = {"rounds": 9, "evaluate_every": 3}
    saved: list[dict[str, object]] = []
    whole = Loop(federate(clients, "cm", Growing(), **settings), clients[0], checkpoint=saved.append).run()
    again = Loop(federate(clients, "cm", Growing(), **settings), clients[0]).run(resume=saved[0])
    assert torch.equal(weights_of(whole), weights_of(again))


def test_a_memory_that_an_attack_did_not_start_with_is_refused(
    clients: list[tuple[Tensor, Tensor]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Growing, "named", False)
    with pytest.raises(
        PluginError, match=r"growing remembers must be named by its start\(\), which named nothing; craft"
    ):
        Loop(federate(clients, "cm", Growing())).run()


def test_broken_clients_neither_end_the_run_nor_move_it(clients: list[tuple[Tensor, Tensor]]) -> None:
    result = Loop(federate(clients, "tq", "nonfinite", full_trace=True), clients[0]).run()
    assert result.diverged is None
    assert torch.isfinite(weights_of(result)).all()
    weights = torch.tensor(result.trace.weights)
    assert (weights[:, N - F :] == 0).all()
    assert result.trace.byzantine_kept == [0] * 6


def test_a_run_that_diverges_ends_early_and_says_in_which_round(clients: list[tuple[Tensor, Tensor]]) -> None:
    result = Loop(federate(clients, "mean", "signflip(scale=1e30)", rounds=40, rate=1e10), clients[0]).run()
    assert result.diverged is not None
    assert result.diverged < 39
    assert f"round {result.diverged}" in result.notes[-1]


def test_a_trace_is_small_and_its_weights_come_back(clients: list[tuple[Tensor, Tensor]]) -> None:
    result = Loop(federate(clients, "tq", "ipm", rounds=400)).run()
    packed = result.trace.pack()
    assert len(packed["rounds"]) <= 151
    assert len(str(packed)) < 12_000
    back = unpack_weights(packed, N)
    torch.testing.assert_close(back, torch.tensor(result.trace.weights, dtype=torch.float64), atol=0.004, rtol=0)


def test_clients_that_were_not_asked_have_no_weight(clients: list[tuple[Tensor, Tensor]]) -> None:
    result = Loop(federate(clients, "cm(f=0.3)", "bf", share=0.5, full_trace=True)).run()
    table = torch.tensor(result.trace.weights)
    assert (table.isnan().sum(1) == N - round(0.5 * N)).all()
    assert unpack_weights(result.trace.pack(), N).isnan().equal(table.isnan())


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_a_run_may_be_on_another_gpu_than_the_current_one(clients: list[tuple[Tensor, Tensor]]) -> None:
    x, y = (torch.cat(parts) for parts in zip(*clients, strict=True))
    runs = [
        train(small_model(), clients, "tq", "ipm", f=F, test=(x, y), device=f"cuda:{k}", rounds=100, rate=0.1)
        for k in (0, 1)
    ]
    assert runs[0].accuracy == pytest.approx(runs[1].accuracy, abs=1)
    assert runs[1].accuracy > 90


def test_a_short_run_has_a_curve_and_looking_more_often_changes_nothing(clients: list[tuple[Tensor, Tensor]]) -> None:
    seen, unseen = (
        Loop(federate(clients, "bucketing >> tq(f=0.2)", "mimic", rounds=40, **often), clients[0]).run()
        for often in ({}, {"evaluate_every": 40})
    )
    assert [t for t, _ in seen.curve] == list(range(4, 41, 4))
    assert seen.accuracy == unseen.accuracy and torch.equal(weights_of(seen), weights_of(unseen))
    counts = {rounds: sum(Settings(rounds=rounds).evaluates_at(t + 1) for t in range(rounds)) for rounds in COUNTS}
    assert counts == COUNTS


COUNTS = {1: 1, 9: 9, 15: 8, 100: 10, 500: 10, 1500: 30, 3000: 30}
"""Evaluations of runs of so many rounds."""


def test_the_rate_follows_its_schedule() -> None:
    settings = Settings(rounds=100, rate=0.1, schedule=((0.75, 0.1),))
    assert [settings.rate_at(t) for t in (0, 74, 75, 99)] == pytest.approx([0.1, 0.1, 0.01, 0.01])
    for schedule, wanted in (
        (((2, 0.5), (60, 0.1)), [1.0, 1.0, 0.5, 0.05, 0.05]),
        ("linear", [1.0, 0.99, 0.5, 0.4, 0.01]),
        ("cosine", [(1 + math.cos(math.pi * t / 100)) / 2 for t in (0, 1, 50, 60, 99)]),
        (lambda t: 1 / (1 + t), [1.0, 1 / 2, 1 / 51, 1 / 61, 1 / 100]),
    ):
        named = Settings(rounds=100, rate=1.0, schedule=schedule)
        assert [named.rate_at(t) for t in (0, 1, 50, 60, 99)] == pytest.approx(wanted)
    for bad in (
        *(((float("inf"), 0.1),), ((0.5, float("nan")),), ((0.5, 10**400),), ((0.5, "0.1"),), ((1.5, 0.1),), 0.5),
        *(((-1, 0.1),), ((1500, 0.1),), ((1, 0.1),), ((1.0, 0.1),)),
    ):
        with pytest.raises(
            ValueError, match=r"schedule must be \(point, factor\) pairs .* one of the rounds 2 to 1499"
        ):
            Settings(schedule=bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"leave a rate that float32 holds, got 1\S*e\+39 from 0.5 on"):
        Settings(rate=1.0, schedule=((0.0, 0.1), (0.5, 1e40)))


def test_a_run_steps_at_the_rate_of_its_schedule(clients: list[tuple[Tensor, Tensor]]) -> None:
    by_round = Loop(federate(clients, "cm", "ipm", schedule=((2, 0.5), (4, 0.1)))).run()
    asked: list[int] = []

    def by_function(t: int) -> float:
        asked.append(t)
        return 1.0 if t < 2 else 0.5 if t < 4 else 0.5 * 0.1

    assert torch.equal(
        weights_of(by_round), weights_of(Loop(federate(clients, "cm", "ipm", schedule=by_function)).run())
    )
    assert sorted({*asked}) == [*range(6)]


@pytest.mark.parametrize("engine", ["loop", "vmap", "dense"])
@pytest.mark.parametrize("statistics", [*batchnorm.UPDATES, "batch"])
def test_running_statistics_move_by_their_policy(engine: str, statistics: str) -> None:
    means = (1.0, 2.0, 6.0, 50.0)
    clients = [(torch.full((8, 2), mean), torch.zeros(8, dtype=torch.int64)) for mean in means]
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 3))
    federation = federate(clients, "mean(f=0)", "lf", f=1, engine=engine, model=model, classes=3, statistics=statistics)
    federation.round(0, verdict=False)
    mean, variance = {
        "mean": (0.1 * (1 + 2 + 6) / 3, 0.9),  # the honest alone
        "median": (0.1 * (2 + 6) / 2, 0.9),  # everyone
        "batch": (0.1 * (1 + 2 + 6) / 3, 0.9),
    }[statistics]
    torch.testing.assert_close(federation.running, torch.tensor([mean, mean, variance, variance]), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("tracked", [True, False])
@pytest.mark.parametrize("statistics", ["mean", "batch"])
def test_evaluation_goes_by_running_statistics_or_by_each_test_batch(statistics: str, tracked: bool) -> None:
    g = torch.Generator().manual_seed(0)
    linear = nn.Linear(3, 4, bias=False)
    linear.weight.data = torch.randn(4, 3, generator=g)
    model = nn.Sequential(nn.BatchNorm1d(3, track_running_stats=tracked), nn.Dropout(0.5), linear)
    client = torch.randn(8, 3, generator=g), torch.zeros(8, dtype=torch.int64)
    federation = federate([client] * 2, "mean", "none", f=0, model=model, statistics=statistics)
    # No batch has this mean and variance, and no two batches the same.
    if tracked:
        federation.running.copy_(torch.tensor([5.0, -7, 2, 0.1, 9, 30]))
    x, y = torch.randn(257, 3, generator=g) * torch.linspace(0.1, 9, 257)[:, None], torch.arange(257) % 4
    x += torch.linspace(-9, 9, 257)[:, None]
    if tracked and statistics == "mean":
        normal = (x - federation.running[:3]) / (federation.running[3:] + 1e-5).sqrt()
    else:  # three batches of at most 128, and none of one
        normal = torch.cat([nn.functional.batch_norm(part, None, None, training=True) for part in x.tensor_split(3)])
    wanted = 100 * float((linear(normal).argmax(1) == y).double().mean())
    assert federation.score((x, y)).accuracy == pytest.approx(wanted)
    assert federation.score((x, y)).accuracy == pytest.approx(wanted)  # dropout is off, and nothing is left behind
    assert all(layer.training for layer in federation.model.modules())


def test_an_empty_test_set_is_refused(clients: list[tuple[Tensor, Tensor]]) -> None:
    with pytest.raises(ValueError, match="must hold a sample at least"):
        Loop(federate(clients, "tq", "ipm"), (torch.zeros(0, 2), torch.zeros(0, dtype=torch.int64)))


def test_every_client_has_its_own_dropout() -> None:
    x, y = torch.ones(64, 50), torch.zeros(64, dtype=torch.int64)
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(50, 2))
    for engine in ("loop", "vmap", "dense"):
        federation = federate([(x, y)] * 3, "mean", "none", f=0, engine=engine, model=model, classes=2, momentum=0.0)
        federation.round(0, verdict=False)
        assert not torch.allclose(federation.sent[0], federation.sent[1])


@pytest.mark.parametrize("model", ["cnn", "resnet20"])
def test_the_papers_models_train_alike_on_every_engine(model: str) -> None:
    g = torch.Generator().manual_seed(0)
    shape = (1, 28, 28) if model == "cnn" else (3, 32, 32)
    clients = [(torch.randn(12, *shape, generator=g), torch.randint(10, (12,), generator=g)) for _ in range(4)]
    ends = []
    for engine in ("loop", "vmap", "dense"):
        net = build(model, seed=1)
        for module in net.modules():
            if isinstance(module, nn.Dropout | nn.Dropout2d):
                module.p = 0.0
        options = {"rounds": 2, "batch": 4, "momentum": 0.5, "rate": 0.01}
        federation = federate(clients, "tq", "lf", f=1, engine=engine, model=net, classes=10, **options)
        result = Loop(federation).run()
        ends.append(torch.cat([weights_of(result), federation.running]))
    torch.testing.assert_close(ends[0], ends[1], rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(ends[0], ends[2], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rounds": 0}, "rounds"),
        ({"momentum": 1.0}, "momentum"),
        ({"share": 0.0}, "share"),
        ({"statistics": "max"}, "statistics"),
    ],
)
def test_settings_out_of_range_are_refused_by_name(settings: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Settings(**settings)  # type: ignore[arg-type]


def test_bad_runs_are_refused_with_a_sentence(clients: list[tuple[Tensor, Tensor]]) -> None:
    with pytest.raises(ValueError, match="so that a client is honest"):
        federate(clients, "mean(f=0)", "ipm", f=N)
    with pytest.raises(ValueError, match="n must be at least 2f"):
        federate(clients, "tq(f=3)", "ipm", share=0.5)
    with pytest.raises(ValueError, match="loss must be one of"):
        train(small_model(), clients, "tq", loss="hinge")
    with pytest.raises(ValueError, match="clients must be one or more, got none"):
        train(small_model(), [], "tq")
    with pytest.raises(ValueError, match="client 1 must have as many labels"):
        train(small_model(), [clients[0], (clients[0][0], clients[0][1][:3])], "mean", classes=CLASSES)
    with pytest.raises(ValueError, match=r"f must be a whole number from 0 to n-1.*got n=9, f=0.25"):
        train(small_model(), clients, "cm", f=0.25)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="attack must be an Attack or its text, got None"):
        train(small_model(), clients, "cm", None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"unknown setting 'round' .did you mean 'rounds'"):
        train(small_model(), clients, "cm", round=3)


def test_arrays_of_double_precision_and_labels_that_are_numbers_train(clients: list[tuple[Tensor, Tensor]]) -> None:
    arrays = [(x.double().numpy(), y.double().numpy()[:, None]) for x, y in clients]
    result = train(nn.Linear(6, 1), arrays, "cm", "ipm", f=1, loss=nn.functional.mse_loss, rounds=3)
    assert weights_of(result).dtype == torch.float32 and torch.isfinite(weights_of(result)).all()
    with pytest.raises(ValueError, match=r"the loss of the test set cannot be computed: .*Float"):
        train(small_model(), clients, "cm", test=(clients[0][0], clients[0][1].float()), rounds=1)


def test_data_take_the_models_precision(clients: list[tuple[Tensor, Tensor]]) -> None:
    arrays = [(x.numpy(), y.numpy()) for x, y in clients]
    result = train(small_model().double(), arrays, "cm", "ipm", f=1, test=arrays[0], rounds=3)
    assert weights_of(result).dtype == torch.float64 and result.accuracy > 0


def test_seeds_of_different_purposes_differ() -> None:
    draws = {float(torch.rand(1, generator=generator(0, p))) for p in ("batches", "attack", "split", "rule")}
    assert len(draws) == 4
    assert not math.isnan(sum(draws))


@pytest.mark.parametrize("name", ["cnn", "resnet20"])
def test_how_images_lie_in_memory_changes_no_gradient(name: str) -> None:
    model, shape = build(name, seed=3).eval(), (1, 28, 28) if name == "cnn" else (3, 32, 32)
    x, y = torch.randn(6, *shape, generator=torch.Generator().manual_seed(0)), torch.arange(6)

    def differentiate() -> list[Tensor]:
        return list(torch.autograd.grad(nn.functional.cross_entropy(model(x), y), list(model.parameters())))

    plain = differentiate()
    with channels_last(model):
        turned = differentiate()
    for a, b in zip(plain, turned, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
