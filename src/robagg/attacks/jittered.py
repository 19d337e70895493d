"""Jitter: what sets apart clients that would otherwise all send one row, so that it looks like the honest spread."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from robagg._core.checks import read_number
from robagg._core.registry import LATER
from robagg.attacks.base import Attack, Setup, State, View


@dataclass(frozen=True)
class Jittered(Attack):
    """An attack whose clients send one row, to which each may add a vector of its own.

    x_k = row + jitter * sum_i q_ki (x_i - mean)        over the honest rows x_i

    The h-vectors q_k are Gaussian, of length 1, at right angles to each other (in blocks of h, where f > h), and drawn
    once, before the first round. So what a client adds is Gaussian with the covariance of the honest rows, its squared
    length is on average jitter^2 times the honest spread (1/h) sum_i |x_i - mean|^2, and it changes from round to round
    as slowly as the honest rows do.
    """

    jitter: float = field(default=0.0, kw_only=True, metadata=LATER)

    def __post_init__(self) -> None:
        read_share(self, "jitter")

    def start(self, setup: Setup) -> State:
        """mix (f, h): the vectors q; nothing without jitter."""
        return {"mix": draw_mix(setup)} if self.jitter else {}

    def spread(self, view: View, row: Tensor, state: State) -> Tensor:
        """(f, d): the row, moved for each client by its own vector."""
        return self.shake(view, view.send(row), state)

    def shake(self, view: View, sent: Tensor, state: State) -> Tensor:
        """(f, d): the rows, each moved by its client's own vector."""
        return sent + self.jitter * deviate_apart(view, state["mix"]) if self.jitter else sent

    def describe_jitter(self) -> str:
        """What to add to the description; empty without jitter."""
        return f", each moved by {self.jitter:g} honest spreads of its own" if self.jitter else ""


def read_share(attack: Attack, name: str) -> None:
    """Check a field that must be a finite number, at least 0, and keep it as a float."""
    value = read_number(name, getattr(attack, name))
    if value < 0:
        raise ValueError(f"{name} must be a finite number >= 0, got {value:g}")
    object.__setattr__(attack, name, value)


def draw_mix(setup: Setup) -> Tensor:
    """(f, h) Gaussian rows of length 1, at right angles to each other in blocks of h."""
    h = max(setup.n - setup.f, 1)
    blocks = [torch.linalg.qr(setup.normal(h, h).double().cpu())[0] for _ in range(math.ceil(setup.f / h))]
    rows = torch.cat(blocks)[: setup.f] if blocks else torch.zeros(0, h)
    return rows.to(device=setup.device, dtype=setup.dtype)


def weigh_apart(view: View, mix: Tensor) -> Tensor:
    """(f, h) the weights, of sum 0, by which each client's own vector is made of the honest rows."""
    return fit_weights(view, view.pick(mix))


def fit_weights(view: View, rows: Tensor) -> Tensor:
    """Weights (k, h) of sum 0 for the honest rows of this round, from rows of `draw_mix`."""
    h = len(view.honest)
    if h < rows.shape[1]:  # some of the honest clients are asked: fewer entries, made longer
        rows = rows[:, :h] * math.sqrt(rows.shape[1] / h)
    return rows - rows.mean(1, keepdim=True)


def deviate_apart(view: View, mix: Tensor) -> Tensor:
    """(f, d) each client's own vector."""
    return weigh_apart(view, mix) @ view.honest
