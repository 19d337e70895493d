"""MIMIC: all copy one honest client."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from robagg._core.alias import Alias
from robagg._core.checks import read_whole
from robagg._core.registry import LATER
from robagg.attacks.base import Attack, Setup, State, View


@dataclass(frozen=True)
class MIMIC(Attack):
    """Copy the honest client that stands out most, so that its data count f + 1 times.

    v <- sum_i y_i <y_i, v>,    i* = argmax_i <y_i, v>,    x_k = x_i*        with y_i = x_i - mean

    v starts as a seeded normal vector; one power step a round turns it towards the main direction of the honest
    spread. After `warmup` rounds v and i* stay as they are; during the warm-up the current i* is copied. Nothing
    that is sent looks unusual: the attack lives on the difference between honest clients.

    ByzFL's `Mimic(epsilon=0)` copies client epsilon, as this one does where it is given one; alone it chooses.

    Args:
        warmup: rounds in which v and i* are still looked for, at least 1.
        client: the honest client that is copied, from 0; None: the one that stands out.

    Example:
        >>> import torch
        >>> from robagg.attacks import MIMIC, Setup, View
        >>> honest = torch.tensor([[0.0, 0.1], [0.0, -0.1], [5.0, 0.0], [-5.0, 0.0]])
        >>> state = MIMIC().start(Setup(n=5, f=1, d=2, generator=torch.Generator().manual_seed(0)))
        >>> sent, state = MIMIC().craft(View(honest, None, n=5, f=1), state)
        >>> sent.abs(), state["choice"] >= 2
        (tensor([[5., 0.]]), tensor(True))

    References:
        Karimireddy, He, Jaggi. Byzantine-robust learning on heterogeneous datasets via bucketing. ICLR 2022.
        arXiv:2006.09365.
    """

    aliases: ClassVar[tuple[str, ...]] = (Alias("Mimic", {"epsilon": "client"}),)

    warmup: int = 1
    client: int | None = field(default=None, metadata=LATER)

    def __post_init__(self) -> None:
        read_whole(self, "warmup", 1)
        if self.client is not None:
            read_whole(self, "client", 0)

    def start(self, setup: Setup) -> State:
        """direction (d,): v; choice (): i*; rounds (): warm-up rounds done."""
        return {
            "direction": setup.normal(setup.d),
            "choice": setup.zeros(dtype=torch.int64),
            "rounds": setup.zeros(dtype=torch.int64),
        }

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        if self.client is not None:
            return view.send(view.honest[min(self.client, len(view.honest) - 1)]), state
        # A captured round cannot branch on the count in the state; a caller who knows the round spares three passes.
        if view.round is None or view.round < self.warmup:
            state = self._look(view.honest, state)
        # Fewer honest rows than when the choice was made (a share of the clients is sampled): the last one.
        at = state["choice"].clamp(max=len(view.honest) - 1).view(1)
        return view.send(view.honest.index_select(0, at)), state

    def _look(self, x: Tensor, state: State) -> State:
        """One power step and a new choice, which count only while the warm-up lasts."""
        v = state["direction"]
        p = x @ v
        # The weights p - mean(p) sum to 0, so the rows need no centring: a copy of them and a pass are saved.
        step = (p - p.mean()) @ x
        # Its largest entry is made 1, as its length could underflow; rows that coincide have no direction: v stays.
        size = torch.linalg.vector_norm(step, ord=torch.inf)
        step = torch.where(size > 0, step / size, v)
        looking = state["rounds"] < self.warmup
        return {
            "direction": torch.where(looking, step, v),
            "choice": torch.where(looking, (x @ step).argmax(), state["choice"]),
            "rounds": (state["rounds"] + 1).clamp(max=self.warmup),
        }

    def describe(self, n: int, f: int) -> str:
        if self.client is not None:
            return f"all copy honest client {self.client}"
        rounds = "round" if self.warmup == 1 else f"{self.warmup} rounds"
        return f"all copy one honest client, chosen in the first {rounds}"
