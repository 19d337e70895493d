"""Clones: a few honest clients, sent again and again."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from robagg._core.checks import read_whole
from robagg.attacks.along import check_choice
from robagg.attacks.base import State, View
from robagg.attacks.jittered import Jittered

WHOM = ("near", "far", "centre", "rim")


@dataclass(frozen=True)
class Clones(Jittered):
    """Copy a few honest clients, so that their data count several times and others' hardly at all.

    x_k = x_(i_(k mod count)) + jitter own_k

    Who is copied is chosen in each round: the `count` honest clients nearest to the first one (itself included; where
    data are dealt out by label these hold the same labels), those farthest from it, those nearest to the honest mean,
    or those farthest from that. MIMIC copies one client, exactly.

    Args:
        count: how many honest clients are copied.
        of: "near" or "far" (from the first honest client), "centre" or "rim" (near or far from the honest mean).
        jitter: how far each copy moves by a vector of its own, in honest spreads (see `Jittered`).

    Example:
        >>> import torch
        >>> from robagg.attacks import Clones, View
        >>> honest = torch.tensor([[0.0], [5.0], [1.0], [9.0]])
        >>> Clones(count=2, jitter=0.0).craft(View(honest, None, n=7, f=3), {})[0]
        tensor([[0.],
                [1.],
                [0.]])

    References:
        Karimireddy, He, Jaggi. Byzantine-robust learning on heterogeneous datasets via bucketing. ICLR 2022.
        arXiv:2006.09365 (MIMIC).
    """

    count: int = 3
    of: str = "near"
    jitter: float = field(default=0.12, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        read_whole(self, "count", 1)
        check_choice(self, "of", WHOM)

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        if not len(view.who):
            return view.allot(), state
        away = view.away if self.of in ("centre", "rim") else view.away - view.away[0]
        order = torch.linalg.vector_norm(away, dim=1).sort(stable=True, descending=self.of in ("far", "rim")).indices
        count = min(self.count, len(order))
        copied = view.honest.index_select(0, order[:count])
        # Stacked from views of the rows: a list of indices would have to travel to the device.
        return self.shake(view, torch.stack([copied[k % count] for k in view.who]), state), state

    def describe(self, n: int, f: int) -> str:
        where = {
            "near": "nearest to the first",
            "far": "farthest from the first",
            "centre": "nearest to the mean",
            "rim": "farthest from the mean",
        }
        return f"copies of the {self.count} honest clients {where[self.of]}{self.describe_jitter()}"
