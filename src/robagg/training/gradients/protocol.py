"""What the ways to compute all clients' gradients have in common, and what takes the gradients from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

from torch import Tensor

from robagg.training.optimisers import Optimiser


class Receiver(Protocol):
    """Takes gradients, in whichever of two forms they come. Row i is that of the i-th batch."""

    def take(self, row: int, parts: list[Tensor]) -> None:
        """One client's, parameter by parameter; several threads may call at the same time."""

    def take_all(self, rows: Tensor) -> None:
        """All clients', (clients, d), in memory that the next run overwrites."""

    def find_optimiser(self, row: int) -> Optimiser | None:
        """By which the client of this row makes its local steps; None: by plain gradient descent."""


class Engine(ABC):
    """A way to compute the gradients of all clients on one shared model."""

    note: str | None = None
    """What people should know of how it computes."""

    @abstractmethod
    def fill(self, x: Tensor, y: Tensor, into: Receiver) -> tuple[Tensor, Tensor]:
        """Hand on the gradients of batches x (clients, steps*b, ...), y; losses (clients,), statistics (clients, s)."""


class AtOnce(Engine):
    """An engine that computes all gradients before it hands them on."""

    @abstractmethod
    def run(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients (clients, d), losses (clients,), statistics (clients, s) of x (clients, steps*b, ...) and y."""

    def fill(self, x: Tensor, y: Tensor, into: Receiver) -> tuple[Tensor, Tensor]:
        rows, losses, statistics = self.run(x, y)
        into.take_all(rows)
        return losses, statistics
