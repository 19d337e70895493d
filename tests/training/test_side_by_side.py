"""Clients side by side on the cores of a CPU get what they would get one after the other."""

from __future__ import annotations

import gc
import random
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from robagg.models import batchnorm
from robagg.models.build import build
from robagg.models.flat import Flat
from robagg.training.gradients.looped import Looped, Loss, Work
from robagg.training.gradients.side_by_side import Team, own_dropout, stands_alone


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def compute(model: nn.Module, x: Tensor, y: Tensor, count: int, work: Work | None = None) -> list[Tensor]:
    torch.set_num_threads(count)
    torch.manual_seed(5)
    flat = Flat(model)
    rows = torch.zeros(len(x), flat.d)
    engine = Looped(model, flat, flat.flatten(), work or Work(functional.cross_entropy))
    found = [*engine.run(x, y, lambda i, g: rows[i].copy_(flat.join(g))), rows]
    torch.set_num_threads(2)
    return found


def draw(shape: tuple[int, ...], clients: int = 5) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    return torch.randn(clients, 4, *shape, generator=g), torch.randint(10, (clients, 4), generator=g)


@pytest.mark.parametrize(("name", "shape"), [("cnn", (1, 28, 28)), ("resnet20", (3, 32, 32))])
def test_the_number_of_cores_changes_nothing(name: str, shape: tuple[int, ...]) -> None:
    x, y = draw(shape)
    wanted = compute(batchnorm.convert(build(name, seed=0)).train(), x, y, 1)
    assert wanted[2].any()
    for count in (2, 3, 5, 10):
        got = compute(batchnorm.convert(build(name, seed=0)).train(), x, y, count)
        for a, b in zip(got, wanted, strict=True):
            if count <= len(x):
                assert torch.equal(a, b)
            else:  # two cores a client, which torch adds up in another order
                assert float((a - b).norm()) <= 1e-2 * float(b.norm())


def test_it_is_done_at_the_same_time_and_again_with_moved_weights() -> None:
    x, y = draw((6,), clients=2)
    together = threading.Barrier(2, timeout=60)
    model = nn.Linear(6, 10)
    flat = Flat(model)
    w = flat.flatten()
    engine = Looped(model, flat, w, Work(functional.cross_entropy))
    engine.run(x, y, lambda i, g: together.wait() and None)  # breaks unless both clients are at it
    w.zero_()
    losses, _ = engine.run(x, y, lambda i, g: None)
    torch.testing.assert_close(losses, torch.full((2,), 10.0).log())


class Drawing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(functional.dropout(x))


class Counting(Drawing):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.layer(x)


class Uncopied(Drawing):
    def __deepcopy__(self, memo: object) -> None:
        raise RuntimeError("there is only one")


def watched() -> nn.Module:
    model = nn.Linear(6, 10)
    model.register_forward_hook(lambda *_: None)
    return model


class Remembering(Drawing):
    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.layer(x) * self.calls


class Rolling(Drawing):
    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) if random.random() < 0.5 else self.layer(-x)


class Patched(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Dropout(0.5), nn.Linear(6, 10))
        self[0].forward = functional.dropout


def noisy_loss(output: Tensor, target: Tensor) -> Tensor:
    return functional.cross_entropy(output + torch.randn_like(output), target)


def numpy_loss(output: Tensor, target: Tensor) -> Tensor:
    return functional.cross_entropy(output, target) * float(np.random.random())


@pytest.mark.parametrize(
    ("make", "loss"),
    [
        *((make, functional.cross_entropy) for make in (Drawing, Counting, Uncopied, watched, Remembering, Patched)),
        (Rolling, functional.cross_entropy),
        (lambda: nn.Linear(6, 10), noisy_loss),
        (lambda: nn.Linear(6, 10), numpy_loss),
    ],
)
def test_what_does_not_stand_alone_runs_as_it_is(make: Callable[[], nn.Module], loss: Loss) -> None:
    x, y = draw((6,))
    assert stands_alone(nn.Linear(6, 10), functional.cross_entropy, x[0], y[0])
    home: set[str] = set()

    def told(output: Tensor, target: Tensor) -> Tensor:
        home.add(threading.current_thread().name)
        return loss(output, target)

    found = []
    for count in (1, 2):
        torch.manual_seed(1)
        random.seed(1)
        np.random.seed(1)
        model = make()
        assert not stands_alone(model, loss, x[0], y[0])
        found.append(compute(model, x, y, count, Work(told)))
        if isinstance(model, Counting):
            assert model.calls == 5
    assert home == {threading.current_thread().name}
    for a, b in zip(*found, strict=True):
        assert torch.equal(a, b)


def test_looking_changes_neither_the_model_nor_what_is_drawn() -> None:
    model = Counting()
    torch.manual_seed(3)
    wanted = torch.rand(3)
    torch.manual_seed(3)
    stands_alone(model, noisy_loss, torch.zeros(4, 6), torch.zeros(4, dtype=torch.int64))
    assert torch.equal(torch.rand(3), wanted) and model.calls == 0


def test_modes_of_the_thread_hold() -> None:
    x, y = draw((6,))
    with torch.autocast("cpu", torch.bfloat16):
        one, two = (compute(make_linear(), x, y, count) for count in (1, 2))
    for a, b in zip(one, two, strict=True):
        assert torch.equal(a, b)


def make_linear() -> nn.Module:
    torch.manual_seed(2)
    return nn.Linear(6, 10)


def test_copies_share_what_is_not_trained() -> None:
    x, y = draw((6,))
    model = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Linear(6, 10))
    model[0].requires_grad_(False)
    model = batchnorm.convert(model).train()
    flat = Flat(model)
    w = flat.flatten()
    engine = Looped(model, flat, w, Work(functional.cross_entropy))
    engine.run(x, y, lambda i, g: None)
    assert len(engine._flats) == 2
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        theirs = dict([*engine._flats[1].model.named_parameters(), *engine._flats[1].model.named_buffers()])[name]
        assert theirs.data_ptr() == tensor.data_ptr()


def test_threads_end_with_their_team() -> None:
    x, y = draw((6,))
    before = count_threads(0)
    torch.set_num_threads(5)
    for count in (2, 3, 4, 5):
        flat = Flat(nn.Linear(6, 10))
        engine = Looped(flat.model, flat, flat.flatten(), Work(functional.cross_entropy))
        for some in range(2, count + 1):
            engine.run(x[:some], y[:some], lambda i, g: None)
        assert before < threading.active_count() <= before + 5
        del engine
        assert count_threads(before) <= before


def count_threads(wanted: int) -> int:
    """How many there are, once those that have nothing to do any more have ended."""
    gc.collect()
    ends = time.monotonic() + (60 if wanted else 1)
    while threading.active_count() > wanted and time.monotonic() < ends:
        time.sleep(0.01)
    return threading.active_count()


def test_after_a_failure_the_others_do_not_go_on() -> None:
    x, y = draw((6,), clients=50)
    done: list[int] = []

    def use(i: int, gradient: list[Tensor]) -> None:
        done.append(i)
        if i == 3:
            raise ZeroDivisionError("no use")

    flat = Flat(nn.Linear(6, 10))
    engine = Looped(flat.model, flat, flat.flatten(), Work(functional.cross_entropy))
    with pytest.raises(ZeroDivisionError, match="no use"):
        engine.run(x, y, use)
    assert len(done) < 50


def test_what_goes_wrong_is_raised_when_nobody_is_at_work_any_more() -> None:
    ended = threading.Event()

    def fail() -> None:
        raise ZeroDivisionError("no loss today")

    def last() -> None:
        ended.wait(timeout=0.3)
        ended.set()

    with pytest.raises(ZeroDivisionError, match="no loss today"):
        Team().run([fail, last])
    assert ended.is_set()


def test_a_team_has_the_cores_among_it_and_leaves_the_others_theirs() -> None:
    torch.set_num_threads(4)
    team = Team()
    assert team.run([torch.get_num_threads] * 2) == [2, 2]
    assert team.run([torch.get_num_threads] * 3) == [1, 1, 1]
    assert team.run([torch.get_num_threads]) == [4]
    assert torch.get_num_threads() == 4
    later: list[int] = []
    thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert later == [4]


@pytest.mark.parametrize(
    ("layer", "shape", "channels"),
    [
        (nn.Dropout(0.25), (40, 50), False),
        (nn.Dropout1d(0.25), (40, 50, 6), True),
        (nn.Dropout2d(0.25), (40, 50, 6, 2), True),
        (nn.Dropout3d(0.25), (40, 50, 6, 2, 2), True),
    ],
)
def test_own_dropout_is_torchs(layer: nn.Module, shape: tuple[int, ...], channels: bool) -> None:
    x = torch.ones(shape, requires_grad=True)
    with own_dropout(layer, torch.Generator().manual_seed(0)):
        output = layer(x)
        assert torch.equal(layer.eval()(x), x)
        layer.train()
    assert output.unique().tolist() == pytest.approx([0.0, 1 / 0.75])
    assert abs(float((output > 0).float().mean()) - 0.75) < 0.04
    if channels:
        assert all(len(part.unique()) == 1 for part in output.flatten(2).flatten(0, 1))
    (gradient,) = torch.autograd.grad(output.sum(), x)
    assert torch.equal(gradient, output)
    before = torch.get_rng_state()
    layer(x)
    assert not torch.equal(torch.get_rng_state(), before), "outside, it draws as ever"


def test_own_dropout_of_everything_is_nothing() -> None:
    layer = nn.Dropout(1.0)
    with own_dropout(layer, torch.Generator()):
        assert not layer(torch.ones(9)).any()
