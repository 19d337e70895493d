"""An attack of a user's own is held to what attacks promise, alone and as a part of `Mixed`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import robagg as ra
from robagg.attacks import BF, IPM, LF, MinMax, Mixed, NoAttack, attacks
from robagg.attacks.base import Attack, Setup, State, View, begin, play


@dataclass(frozen=True)
class Sends(Attack):
    """An attack that sends what it is given to send."""

    answer: Callable[[View, State], Any] = lambda view, state: (view.send(view.mean), state)
    memory: Any = None

    def __str__(self) -> str:
        return "sends"

    def start(self, setup: Setup) -> State:
        return {} if self.memory is None else self.memory()  # type: ignore[no-any-return]

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        return self.answer(view, state)  # type: ignore[no-any-return]


def look() -> View:
    return View(torch.randn(5, 3, generator=torch.Generator().manual_seed(0)), None, n=7, f=2)


def change(view: View, state: State) -> Any:
    view.honest.mul_(-1)
    return view.send(view.mean), state


def change_a_view_of_it(view: View, state: State) -> Any:
    view.honest[1:, 0].fill_(0)
    return view.send(view.mean), state


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (change, "sends: craft must not change view.honest, which is what honest clients send: copy it"),
        (change_a_view_of_it, "sends: craft must not change view.honest"),
        (lambda v, s: v.send(v.mean), "sends: craft must return the rows and the state, got Tensor alone"),
        (lambda v, s: None, "sends: craft must return the rows and the state, got None alone"),
        (lambda v, s: (v.mean, s), "sends must give rows of shape (2, 3), got shape (3,)"),
        (lambda v, s: (v.send(v.mean)[:, :2], s), "sends must give rows of shape (2, 3), got shape (2, 2)"),
        (lambda v, s: (np.zeros((2, 3)), s), "sends must give rows of shape (2, 3) as a tensor, got ndarray"),
        (lambda v, s: (torch.zeros(2, 3, dtype=torch.int64), s), "floating-point rows on cpu, got torch.int64 on cpu"),
        (lambda v, s: (v.send(v.mean), None), "sends: craft must give its state as a dict of tensors, got None"),
        (lambda v, s: (v.send(v.mean), {"k": 1}), "sends: craft must give its state as a dict of tensors, got int"),
        (lambda v, s: (v.send(v.mean), {"new": v.mean}), "sends remembers must be named by its start(), which named"),
        (lambda v, s: 1 / 0, "sends: craft raised ZeroDivisionError: division by zero"),
    ],
)
def test_what_an_attack_does_is_looked_at(answer: Any, words: str) -> None:
    with pytest.raises(ra.PluginError, match=re.escape(words)):
        play(Sends(answer), look(), {})


def test_what_an_attack_remembers_is_looked_at() -> None:
    setup = Setup(n=7, f=2, d=3)
    for memory, words in (
        (lambda: [1], "sends: start must give its state as a dict of tensors, got list"),
        (lambda: {"k": 3.0}, "sends: start must give its state as a dict of tensors, got float"),
        (lambda: 1 / 0, "sends: start raised ZeroDivisionError"),
    ):
        with pytest.raises(ra.PluginError, match=re.escape(words)):
            begin(Sends(memory=memory), setup)
    grows = Sends(lambda view, state: (view.send(view.mean), {"k": torch.zeros(4)}), lambda: {"k": torch.zeros(3)})
    with pytest.raises(
        ra.PluginError, match=re.escape("sends must give 'k' in its state of shape (3,), got shape (4,)")
    ):
        play(grows, look(), begin(grows, setup))


def test_an_attack_may_do_as_it_likes_with_copies_and_where_nothing_is_counted() -> None:
    view = look()
    before = view.honest.clone()
    rows, _ = play(Sends(lambda v, s: (v.honest.clone().mul_(-1)[:2], s)), view, {})
    assert torch.equal(rows, -before[:2]) and torch.equal(view.honest, before)
    with torch.inference_mode():
        assert play(IPM(), look(), {})[0].shape == (2, 3)


@pytest.fixture
def careless() -> Iterator[None]:
    @dataclass(frozen=True)
    class Careless(Attack):
        def craft(self, view: View, state: State) -> tuple[Tensor, State]:
            return change(view, state)  # type: ignore[no-any-return]

    attacks.add(Careless)
    yield
    attacks.remove("careless")


@pytest.mark.usefixtures("careless")
def test_a_part_of_a_mix_is_held_to_it_too_and_named() -> None:
    with pytest.raises(ra.PluginError, match=r"^careless: craft must not change view\.honest"):
        play(Mixed("ipm+careless"), look(), {})


@pytest.mark.usefixtures("careless")
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_a_run_does_not_go_on_with_what_an_attack_changed(share: float) -> None:
    clients = [(torch.randn(20, 4), torch.randint(0, 2, (20,))) for _ in range(8)]
    with pytest.raises(ra.PluginError, match=r"careless: craft must not change view\.honest"):
        ra.train(torch.nn.Linear(4, 2), clients, rule="cm(f=0)", attack="careless", f=3, rounds=3, share=share)


def test_an_attack_can_be_called_on_honest_rows_alone() -> None:
    honest = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    wanted, _ = MinMax().craft(View(honest, None, n=9, f=2), {})
    assert torch.equal(MinMax()(honest, f=2), wanted)
    array = MinMax()(honest.numpy())
    assert isinstance(array, np.ndarray) and np.array_equal(array, wanted[:1].numpy())
    own = torch.ones(2, 5)
    assert torch.equal(BF()(honest, f=2, own=own), -own)
    sent = NoAttack()(honest)
    sent.fill_(7)
    assert not (honest == 7).any()
    with pytest.raises(ValueError, match="own must be the gradients that LF sends, got None"):
        LF()(honest)
