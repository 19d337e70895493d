"""Clean data that the server holds, for rules that measure to a row it trusts."""

from __future__ import annotations

import torch
from torch import Tensor

from robagg.models.flat import Flat
from robagg.training.momenta import Momenta
from robagg.training.optimisers import Optimiser
from robagg.training.shards import Shards


class Root:
    """The data, and what an honest client that held them would send: the row that is trusted."""

    def __init__(
        self, data: tuple[Tensor, Tensor], flat: Flat, w: Tensor, momentum: float, optimiser: Optimiser | None
    ) -> None:
        self.shards = Shards([data], w.device, "the root data")
        self.momenta = Momenta(flat, w, 1, 0, momentum, optimisers={} if optimiser is None else {0: optimiser})
        self.momenta.busy = [0]
        self.row = self.momenta.sent[0]

    def draw(self, b: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """A batch (1, b, ...) of the data."""
        at = self.shards.draw(b, generator)
        return self.shards.x[at], self.shards.y[at]
