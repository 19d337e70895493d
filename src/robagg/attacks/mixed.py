"""Mixed: several attacks at once."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from robagg.attacks.base import Attack, Setup, State, View, begin, parse, play


@dataclass(frozen=True)
class Mixed(Attack):
    """Deal several attacks in turn to the f clients: the k-th plays the (k mod m)-th of m attacks.

    Strengths that come from a formula use the total n and f. With the six attacks of the default, f=6 has one of each
    and f=12 two of each.

    Args:
        attacks: the attacks in the order they are dealt, with `+` between them, each written as on its own:
            `"ipm(c0=1.0)+lf"`.

    Example:
        >>> import torch
        >>> from robagg.attacks import Mixed, View
        >>> mixed = Mixed("IPM(c0=2) + sign-flip")
        >>> mixed
        Mixed(attacks='ipm(c0=2.0)+signflip')
        >>> mixed.craft(View(torch.ones(4, 2), None, n=7, f=3), {})[0]
        tensor([[-2., -2.],
                [-1., -1.],
                [-2., -2.]])

    References:
        Those of its parts.
    """

    attacks: str = "ga+alie+bf+ipm+lf+mimic"

    def __post_init__(self) -> None:
        if not isinstance(self.attacks, str) or not self.attacks.strip():
            raise ValueError(f'attacks must be a text such as "ipm+lf", got {self.attacks!r}')
        # One text for one mix, whatever the spelling; an unknown part is refused here and not in the first round.
        object.__setattr__(self, "attacks", "+".join(str(part) for part in self.parts))

    @cached_property
    def parts(self) -> tuple[Attack, ...]:
        """The attacks, in the order they are dealt."""
        return tuple(parse(part) for part in split_sum(self.attacks))

    def wants_gradient(self, k: int) -> bool:
        part, its_k = self._deal(k)
        return part.wants_gradient(its_k)

    def poison(self, x: Tensor, y: Tensor, *, classes: int, k: int) -> tuple[Tensor, Tensor]:
        part, its_k = self._deal(k)
        return part.poison(x, y, classes=classes, k=its_k)

    def goal(self, x: Tensor, y: Tensor, *, classes: int) -> tuple[Tensor, Tensor] | None:
        """Those of all parts that have one, one after the other."""
        goals = [goal for part in self.parts if (goal := part.goal(x, y, classes=classes)) is not None]
        return (torch.cat([x for x, _ in goals]), torch.cat([y for _, y in goals])) if goals else None

    def start(self, setup: Setup) -> State:
        """The parts' states, under their place in the order: `5.direction`."""
        state: State = {}
        for i, part in enumerate(self.parts):
            state |= {f"{i}.{key}": value for key, value in begin(part, setup).items()}
        return state

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        sent = view.allot()
        state = dict(state)
        m = len(self.parts)
        for i, part in enumerate(self.parts):
            at = [j for j, k in enumerate(view.who) if k % m == i]
            if not at:
                continue
            clients = tuple(view.who[j] // m for j in at)
            of_view = dataclasses.replace(view, own=self._own(view, at), clients=clients)
            of_part = {key.removeprefix(f"{i}."): value for key, value in state.items() if key.startswith(f"{i}.")}
            rows, of_part = play(part, of_view, of_part)
            state |= {f"{i}.{key}": value for key, value in of_part.items()}
            for j, row in zip(at, rows, strict=True):
                sent[j].copy_(row)
        return sent, state

    def describe(self, n: int, f: int) -> str:
        return "; ".join(f"{part.name()}: {part.describe(n, f)}" for part in self.parts)

    def _deal(self, k: int) -> tuple[Attack, int]:
        """The attack that the k-th client plays, and its number among those that play it."""
        its_k, i = divmod(k, len(self.parts))
        return self.parts[i], its_k

    def _own(self, view: View, at: list[int]) -> Tensor | None:
        """The gradients of the clients at these rows; None where they want none."""
        own = view.own
        if own is None or not any(self.wants_gradient(view.who[j]) for j in at):
            return None
        # Stacked from views of the rows: a list of indices would have to travel to the device.
        return own[at[0] : at[0] + 1] if len(at) == 1 else torch.stack([own[j] for j in at])


def split_sum(text: str) -> list[str]:
    """Split at each `+` that stands outside parentheses and quotes.

    >>> split_sum("ga(variance=1e+20) + mixed(attacks='lf+bf')")
    ['ga(variance=1e+20)', "mixed(attacks='lf+bf')"]
    """
    parts, depth, quote, start = [], 0, "", 0
    for j, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote and text[j - 1] != "\\" else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "()":
            depth += 1 if letter == "(" else -1
        elif letter == "+" and depth == 0:
            parts.append(text[start:j].strip())
            start = j + 1
    return [*parts, text[start:].strip()]
