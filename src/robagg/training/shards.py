"""What each client holds, laid end to end on the device, and batches drawn from it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class Shards:
    """The data of several clients in one block, so that a round draws all batches with one gather."""

    def __init__(self, clients: Sequence[tuple[Tensor, Tensor]], device: torch.device, name: str | None = None) -> None:
        for i, (x, y) in enumerate(clients):
            if len(x) != len(y) or not len(x):
                raise ValueError(
                    f"{name or f'client {i}'} must have as many labels as samples and at least one, "
                    f"got {len(x)} and {len(y)}"
                )
        self.x = torch.cat([x for x, _ in clients]).to(device)
        self.y = torch.cat([y for _, y in clients]).to(device)
        sizes = torch.tensor([len(y) for _, y in clients], device=device)
        self.sizes = sizes[:, None]
        self.offsets = (sizes.cumsum(0) - sizes)[:, None]

    def draw(self, b: int, generator: torch.Generator) -> Tensor:
        """Positions (clients, b) of b samples of each client, drawn evenly with replacement."""
        u = torch.rand(len(self.sizes), b, generator=generator, device=self.sizes.device, dtype=torch.float64)
        return self.offsets + (u * self.sizes).long()

    def of(self, i: int) -> tuple[Tensor, Tensor]:
        """All that the i-th of the clients holds."""
        begin, size = int(self.offsets[i]), int(self.sizes[i])
        return self.x[begin : begin + size], self.y[begin : begin + size]
