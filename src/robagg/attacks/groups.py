"""Groups: heaps that pull aside in different directions, and together in one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from robagg._core.checks import read_whole
from robagg.attacks.base import Setup, State, View
from robagg.attacks.heap import Heap
from robagg.attacks.jittered import draw_mix, fit_weights, read_share


@dataclass(frozen=True)
class Groups(Heap):
    """Divide into heaps, moved aside in directions that cancel, so that no one direction shows all of them.

    x_k = mean + distance s u + side s w_(k mod groups) + jitter own_k,    |w_g| = 1

    with s, u and own_k as in `Heap`. The w_g are the clients' own directions (see `Jittered`) of as many clients as
    there are groups, minus their mean: two groups move to opposite sides.

    Args:
        along: "mean", "std" or "sign".
        jitter: how far each client moves from its group by a vector of its own, in honest spreads s.
        distance: of the groups' centre from the honest mean, in honest spreads.
        groups: how many; there are never more than Byzantine clients.
        side: how far each group moves aside, in honest spreads.
        period: rounds after which the groups' centre changes sides; 0: never.

    Example:
        >>> import torch
        >>> from robagg.attacks import Groups, Setup, View
        >>> honest = torch.randn(6, 9, generator=torch.Generator().manual_seed(0))
        >>> attack, setup = Groups(jitter=0.0), Setup(n=8, f=2, d=9, generator=torch.Generator().manual_seed(1))
        >>> sent, _ = attack.craft(View(honest, None, n=8, f=2), attack.start(setup))
        >>> spread = (honest - honest.mean(0)).square().sum(1).mean().sqrt()
        >>> round(float((sent[0] - sent[1]).norm() / spread), 3)  # to opposite sides, by half a spread each
        1.0

    References:
        Its own; against filters of one direction at a time. Diakonikolas, Kamath, Kane, Li, Moitra, Stewart. Robust
        estimators in high dimensions without the computational intractability. FOCS 2016. arXiv:1604.06443.
    """

    groups: int = 2
    side: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        read_whole(self, "groups", 1)
        read_share(self, "side")

    def start(self, setup: Setup) -> State:
        """mix (f, h): by which the groups' and the clients' own directions are made of the honest rows."""
        state = super().start(setup)
        return state if "mix" in state else state | {"mix": draw_mix(setup)}

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        sent, state = super().craft(view, state)
        mix = state["mix"]
        count = min(self.groups, len(mix))
        if not count:
            return sent, state
        away = view.away
        weights = fit_weights(view, mix[:count]).to(away.dtype)
        aside = (weights - weights.mean(0)) @ away
        length = torch.linalg.vector_norm(aside, dim=1, keepdim=True)
        # One group has nothing to be opposite to: what is left of its direction is rounding.
        aside = aside * (self.side * view.spread / length.clamp(min=torch.finfo(away.dtype).tiny)) * (count > 1)
        moved = [aside[k % count] for k in view.who]
        return (sent + torch.stack(moved).to(sent.dtype) if moved else sent), state

    def describe(self, n: int, f: int) -> str:
        return f"{self.groups} groups, each {self.side:g} honest spreads aside, {super().describe(n, f)}"
