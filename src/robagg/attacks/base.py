"""What an attack is: what it sees in a round, what it sends, and what it remembers.

An attack is a frozen dataclass whose fields are its strength. It plays all Byzantine clients of a run at once: they
know each other and see what the honest clients send. `craft` is a pure function of what it sees and of a state that
the caller holds, and asks nothing of the host, so that a whole round can be captured in one CUDA graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import Tensor

from robagg._core.contract import Attribution, PluginError, check_tensor, describe
from robagg._core.registry import Named, Registry
from robagg._core.rule import Rule

State: TypeAlias = dict[str, Tensor]
"""What an attack remembers from round to round: tensors whose shape and dtype stay the same for the whole run."""


@dataclass(frozen=True, eq=False)
class Setup:
    """What an attack knows before the first round.

    Args:
        n: how many clients there are.
        f: how many of them are Byzantine.
        d: how long a row is.
        device: where the rows will be.
        dtype: what they will be.
        generator: on that device; None: torch's default one.

    >>> Setup(n=3, f=1, d=4).normal(2, 4).shape
    torch.Size([2, 4])
    """

    n: int
    f: int
    d: int
    device: torch.device | str = "cpu"
    dtype: torch.dtype = torch.float32
    generator: torch.Generator | None = None

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers, of the kind of the rows."""
        return torch.randn(shape, device=self.device, dtype=self.dtype, generator=self.generator)

    def zeros(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Zeros, of the kind of the rows unless another dtype is given."""
        return torch.zeros(shape, device=self.device, dtype=dtype or self.dtype)


@dataclass(frozen=True, eq=False)
class View:
    """What the Byzantine clients see in one round.

    Args:
        honest: (h, d), what the honest clients send this round (their momenta).
        own: (f, d), the Byzantine clients' own stochastic gradients, without momentum. Rows of clients that do not
            want one are undefined and are never read. None: nobody computed one.
        n: how many clients there are; strengths given by a formula use `n` and `f`.
        f: how many of them are Byzantine.
        generator: on the device of `honest`; None: torch's default one.
        clients: which Byzantine clients (0 to f-1) send this round, one for each row of `own` and of the result.
            None: all f of them.
        round: the number of the round from 0, where the caller knows it (a captured round does not). It may spare
            work and never changes the result.
        rule: the rule that the rows will meet, for attacks that try their rows on it.
        last: (d,), the last aggregate, where that rule remembers it.
        seen: what was computed from `honest` already; attacks that share a round share it.

    >>> View(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), None, n=3, f=1).mean
    tensor([2., 3.])
    """

    honest: Tensor
    own: Tensor | None
    n: int
    f: int
    generator: torch.Generator | None = None
    clients: tuple[int, ...] | None = None
    round: int | None = None
    rule: Rule | None = None
    last: Tensor | None = None
    seen: dict[str, Tensor] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        shape = tuple(self.honest.shape)
        if len(shape) != 2 or shape[0] < 1:
            raise ValueError(f"honest rows must have shape (h, d) with h >= 1, got {shape}")
        if not self.honest.is_floating_point():
            raise ValueError(f"honest rows must be floating point, got {self.honest.dtype}")
        if self.f < 0 or self.n < self.f:
            raise ValueError(f"f must be a number from 0 to n={self.n}, got {self.f}")
        wanted = (len(self.who), shape[1])
        if self.own is not None and tuple(self.own.shape) != wanted:
            raise ValueError(f"own gradients must have shape {wanted}, got {tuple(self.own.shape)}")

    @property
    def who(self) -> Sequence[int]:
        """The Byzantine clients that send this round, in the order of the rows."""
        return range(self.f) if self.clients is None else self.clients

    @property
    def mean(self) -> Tensor:
        """(d,) mean of the honest rows, computed once a round; not to be changed."""
        if "mean" not in self.seen:
            self.seen["mean"] = self.honest.mean(0)
        return self.seen["mean"]

    @property
    def away(self) -> Tensor:
        """(h, d) the honest rows minus their mean, in float32 at least; computed once a round and not to be changed."""
        if "away" not in self.seen:
            self.seen["away"] = self.honest.to(torch.promote_types(self.honest.dtype, torch.float32)) - self.mean
        return self.seen["away"]

    @property
    def spread(self) -> Tensor:
        """() the honest spread: the root of the mean squared distance of the honest rows from their mean."""
        if "spread" not in self.seen:
            self.seen["spread"] = torch.linalg.vector_norm(self.away) / len(self.away) ** 0.5
        return self.seen["spread"]

    def require_own(self, attack: Attack) -> Tensor:
        """(f, d) the Byzantine clients' own gradients; refused where nobody computed them."""
        if self.own is None and not len(self.who):
            return self.allot()
        if self.own is None:
            raise ValueError(f"own must be the gradients that {type(attack).__name__} sends, got None")
        return self.own

    def send(self, row: Tensor) -> Tensor:
        """(d,) or (1, d) -> (f, d): every client sends the same row; the row is stored once."""
        return row.expand(len(self.who), self.honest.shape[1])

    def pick(self, rows: Tensor) -> Tensor:
        """The rows of those who send, of something that has one for each Byzantine client."""
        if self.clients is None:
            return rows
        # Stacked from views of the rows: a list of indices would have to travel to the device.
        return torch.stack([rows[k] for k in self.clients]) if self.clients else rows[:0]

    def allot(self) -> Tensor:
        """(f, d) not yet written, of the dtype and on the device of the honest rows."""
        return self.honest.new_empty((len(self.who), self.honest.shape[1]))


@dataclass(frozen=True)
class Attack(Named, ABC):
    """What the f Byzantine clients do. A subclass writes `craft`, and the other methods where it needs them.

    `craft` is a pure function: the same view, state and state of the generator give the same rows, and its input
    does not change. It never waits for the device (no `.item()`, no `if` on a tensor's value).
    """

    def wants_gradient(self, k: int) -> bool:
        """Whether the k-th Byzantine client (0 to f-1) computes a gradient of its own each round."""
        return False

    def poison(self, x: Tensor, y: Tensor, *, classes: int, k: int) -> tuple[Tensor, Tensor]:
        """The k-th Byzantine client's data as it trains on them: asked for once, before training."""
        return x, y

    def start(self, setup: Setup) -> State:
        """The state before the first round; empty for an attack without memory."""
        return {}

    @abstractmethod
    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        """(f, d) what the Byzantine clients send, and the new state.

        The rows may share memory with each other, with the view and with the state: copy them before writing to them.
        """

    def describe(self, n: int, f: int) -> str:
        """The attack's strength in words, for this n and f."""
        return str(self)


def begin(attack: Attack, setup: Setup) -> State:
    """The attack's state before the first round."""
    with Attribution(attack, "start"):
        state = attack.start(setup)
    return _read_state(attack, "start", state)


def play(attack: Attack, view: View, state: State) -> tuple[Tensor, State]:
    """What the attack sends in a round, and its new state; an attack of a user's own is held to what it promises."""
    # Counted by torch at each change in place, also through views; inference tensors alone are not.
    before = None if view.honest.is_inference() else view.honest._version
    with Attribution(attack, "craft"):
        answer = attack.craft(view, state)
    if before is not None and view.honest._version != before:
        raise PluginError(f"{attack}: craft must not change view.honest, which is what honest clients send: copy it")
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise PluginError(f"{attack}: craft must return the rows and the state, got {describe(answer)} alone")
    rows, after = answer
    shape = (len(view.who), view.honest.shape[1])
    check_tensor(attack, f"rows of shape {shape}", rows, shape)
    if rows.device != view.honest.device or not rows.is_floating_point():
        wanted = f"floating-point rows on {view.honest.device}"
        raise PluginError(f"{attack} must give {wanted}, got {rows.dtype} on {rows.device}")
    after = _read_state(attack, "craft", after)
    if new := after.keys() - state.keys():
        raise PluginError(
            f"what {attack} remembers must be named by its start(), which named {', '.join(state) or 'nothing'}; "
            f"craft() gave {', '.join(sorted(new))}"
        )
    for name, value in after.items():
        check_tensor(attack, f"{name!r} in its state of shape {tuple(state[name].shape)}", value, state[name].shape)
    return rows, after


def _read_state(attack: Attack, method: str, state: Any) -> State:
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        came = ", ".join(map(describe, state.values())) if isinstance(state, dict) else describe(state)
        raise PluginError(f"{attack}: {method} must give its state as a dict of tensors, got {came}")
    return state


attacks: Registry[Attack] = Registry("attack", Attack, "robagg.attacks")  # type: ignore[type-abstract]


def parse(text: str, **defaults: Any) -> Attack:
    """Read an attack from text; `defaults` fill those fields it has and the text leaves out.

    >>> from robagg.attacks import parse
    >>> str(parse("ipm(c0=1)"))
    'ipm(c0=1.0)'
    >>> str(parse("A-Little-Is-Enough", z=1.5))
    'alie(z=1.5)'
    """
    return attacks.parse(text, **defaults)
