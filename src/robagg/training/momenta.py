"""Where the gradients of a round go: honest ones into their clients' momenta, the others to the attack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from robagg.models.flat import Flat
from robagg.training.optimisers import Optimiser


class Momenta:
    """What n clients send, and what the f Byzantine ones among them computed.

    Args:
        flat: the model as one vector.
        n, f: clients, the last f of them Byzantine.
        momentum: of the honest ones.
        wanted: whether the attack wants gradients of its own.
        optimisers: of those clients that have one of their own.
    """

    def __init__(
        self,
        flat: Flat,
        w: Tensor,
        n: int,
        f: int,
        momentum: float,
        *,
        wanted: bool = False,
        optimisers: Mapping[int, Optimiser] | None = None,
    ) -> None:
        self.flat, self.h, self.step, self.optimisers = flat, n - f, 1 - momentum, optimisers or {}
        self.sent = torch.zeros(n, flat.d, device=w.device, dtype=w.dtype)
        """(n, d): the honest clients' momenta, then what the Byzantine send."""
        self.own = torch.zeros(f if wanted else 0, flat.d, device=w.device, dtype=w.dtype)
        """(f, d): the Byzantine clients' own gradients."""
        self.busy: Sequence[int] = ()
        """Which client each row of a round is of, honest ones first."""

    def take(self, row: int, parts: list[Tensor]) -> None:
        i = self.busy[row]
        if i >= self.h:
            self.flat.join(parts, out=self.own[i - self.h])
            return
        # While the gradient is still in the cache, and without a stack of gradients beside the momenta.
        for view, part in zip(self.flat.views(self.sent[i]).values(), parts, strict=True):
            view.lerp_(part, self.step)

    def take_all(self, rows: Tensor) -> None:
        honest = sum(i < self.h for i in self.busy)
        if honest == self.h:
            self.sent[: self.h].lerp_(rows[: self.h], self.step)
        else:
            for row, i in zip(rows, self.busy[:honest], strict=False):
                self.sent[i].lerp_(row, self.step)
        for row, i in zip(rows[honest:], self.busy[honest:], strict=True):
            self.own[i - self.h].copy_(row)

    def find_optimiser(self, row: int) -> Optimiser | None:
        return self.optimisers.get(self.busy[row])

    def walk(self) -> None:
        """Clients with an optimiser send, in place of the gradient that came, the step that it makes of it."""
        for i in self.busy if self.optimisers else ():
            row = self.sent[i] if i < self.h else self.own[i - self.h]
            row.copy_(self.optimisers[i].walk([self.flat.views(row).values()]))
