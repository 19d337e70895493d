"""What an attack is: what it does with what it sees in a round.

An attack is a frozen dataclass whose fields are its strength. It plays all Byzantine clients of a run at once: they
know each other and see what the honest clients send. `craft` is a pure function of what it sees and of a state that
the caller holds, and asks nothing of the host, so that a whole round can be captured in one CUDA graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from robagg._core.checks import is_whole
from robagg._core.contract import Attribution, PluginError, check_tensor, describe
from robagg._core.registry import Named, Registry
from robagg._core.rule import Rule
from robagg.attacks.view import Setup, State, View


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

    def goal(self, x: Tensor, y: Tensor, *, classes: int) -> tuple[Tensor, Tensor] | None:
        """Of the test set the samples as the attackers would show them, and the labels that they want for them.

        The share of these labels that the model gives is the run's `attack_success`. None: it wants no certain labels.
        """
        return None

    def start(self, setup: Setup) -> State:
        """The state before the first round; empty for an attack without memory."""
        return {}

    def __call__(
        self,
        honest: Any,
        *,
        f: int = 1,
        own: Any = None,
        rule: Rule | None = None,
        generator: torch.Generator | None = None,
    ) -> Any:
        """(f, d) what f Byzantine clients send in a first round, in the kind of the honest rows.

        Args:
            honest: (h, d) tensor or array, what the honest clients send.
            f: how many are Byzantine.
            own: (f, d) their own gradients, a tensor or array, for attacks that send these.
            rule: what the rows will meet, for attacks that try them on it.
            generator: what is drawn is drawn from it.
        """
        x = _read_rows("honest rows", honest, "h")
        if not is_whole(f) or f < 0:
            raise ValueError(f"f must be a whole number >= 0, got {f!r}")
        f = int(f)
        own = None if own is None else _read_rows("own gradients", own, "f").to(x)
        view = View(x, own, n=len(x) + f, f=f, generator=generator, round=0, rule=rule)
        state = begin(self, Setup(view.n, f, x.shape[1], x.device, x.dtype, generator))
        rows = play(self, view, state)[0].clone()
        return rows.numpy() if isinstance(honest, np.ndarray) else rows

    @abstractmethod
    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        """(f, d) what the Byzantine clients send, and the new state.

        The rows may share memory with each other, with the view and with the state: copy them before writing to them.
        """

    def describe(self, n: int, f: int) -> str:
        """The attack's strength in words, for this n and f."""
        return str(self)


def _read_rows(what: str, rows: Any, count: str) -> Tensor:
    """Rows that a user gives, as a tensor of two dimensions and real numbers."""
    try:
        x = torch.as_tensor(rows)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{what} must be a tensor or array ({count}, d), got {type(rows).__name__}: {error}"
        ) from error
    if x.ndim != 2 or x.is_complex():
        raise ValueError(f"{what} must be real numbers of shape ({count}, d), got {x.dtype} {tuple(x.shape)}")
    return x


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


__all__ = ["Attack", "Setup", "State", "View", "attacks", "begin", "parse", "play"]
