"""Varying: a number of Byzantine clients that changes from round to round."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from robagg._core.checks import read_whole
from robagg.attacks.base import Attack, Setup, State, View, begin, parse, play
from robagg.attacks.no_attack import NoAttack


@dataclass(frozen=True)
class Varying(Attack):
    """In each round some of the f clients attack; the others send what `none` does.

    How many attack is drawn evenly from `least` to f, and which ones they are is drawn too. Strengths that come from a
    formula use f. A rule that is set up for f meets fewer in most rounds, and one that learns from history cannot tell
    for good who is who.

    Args:
        attack: what those do that attack, as text.
        least: the fewest of them.

    Example:
        >>> import torch
        >>> from robagg.attacks import Varying
        >>> Varying("signflip", least=1)(torch.ones(5, 1), f=3, generator=torch.Generator().manual_seed(0))
        tensor([[ 1.],
                [-1.],
                [-1.]])

    References:
        Dorfman, Yehya, Levy. Dynamic Byzantine-robust learning: adapting to switching Byzantine workers. ICML 2024.
        arXiv:2402.02951.
    """

    attack: str = "ipm"
    least: int = 0

    def __post_init__(self) -> None:
        read_whole(self, "least", 0)
        if not isinstance(self.attack, str) or not self.attack.strip():
            raise ValueError(f'attack must be a text such as "ipm", got {self.attack!r}')
        # One text for one attack, whatever the spelling; an unknown one is refused here and not in the first round.
        object.__setattr__(self, "attack", str(self.parts[0]))

    @cached_property
    def parts(self) -> tuple[Attack, ...]:
        """The attack, alone."""
        return (parse(self.attack),)

    def wants_gradient(self, k: int) -> bool:
        return self.parts[0].wants_gradient(k)

    def poison(self, x: Tensor, y: Tensor, *, classes: int, k: int) -> tuple[Tensor, Tensor]:
        return self.parts[0].poison(x, y, classes=classes, k=k)

    def goal(self, x: Tensor, y: Tensor, *, classes: int) -> tuple[Tensor, Tensor] | None:
        return self.parts[0].goal(x, y, classes=classes)

    def start(self, setup: Setup) -> State:
        """The attack's own."""
        return begin(self.parts[0], setup)

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        rows, state = play(self.parts[0], view, state)
        count, device = len(view.who), view.honest.device
        least = min(self.least, count)
        drawn = torch.rand(1 + count, generator=view.generator, device=device)
        number = least + (drawn[0] * (count - least + 1)).floor()
        attacks = drawn[1:].argsort().argsort() < number
        rest, _ = NoAttack().craft(view, {})
        return torch.where(attacks[:, None], rows, rest), state

    def describe(self, n: int, f: int) -> str:
        return f"{min(self.least, f)} to {f} clients a round: {self.parts[0].describe(n, f)}"
