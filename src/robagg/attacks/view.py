"""What an attack knows before the first round, what it sees in each, and what it may remember."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from torch import Tensor

from robagg._core.rule import Rule

State: TypeAlias = dict[str, Tensor]
"""What an attack remembers from round to round: tensors whose shape and dtype stay the same for the whole run."""


@dataclass(frozen=True, eq=False)
class Setup:
    """What an attack knows before the first round.

    Args:
        n: how many clients there are.
        f: how many of them are Byzantine.
        d: how long a row is.
        device: where the rows will be.
        dtype: what they will be.
        generator: on that device; None: torch's default one.
        momentum: of what the honest clients send.

    >>> Setup(n=3, f=1, d=4).normal(2, 4).shape
    torch.Size([2, 4])
    """

    n: int
    f: int
    d: int
    device: torch.device | str = "cpu"
    dtype: torch.dtype = torch.float32
    generator: torch.Generator | None = None
    momentum: float = 0.0

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers, of the kind of the rows."""
        return torch.randn(shape, device=self.device, dtype=self.dtype, generator=self.generator)

    def zeros(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """Zeros, of the kind of the rows unless another dtype is given."""
        return torch.zeros(shape, device=self.device, dtype=dtype or self.dtype)


@dataclass(frozen=True, eq=False)
class View:
    """What the Byzantine clients see in one round.

    Args:
        honest: (h, d), what the honest clients send this round (their momenta).
        own: (f, d), the Byzantine clients' own stochastic gradients, without momentum. Rows of clients that do not
            want one are undefined and are never read. None: nobody computed one.
        n: how many clients there are; strengths given by a formula use `n` and `f`.
        f: how many of them are Byzantine.
        generator: on the device of `honest`; None: torch's default one.
        clients: which Byzantine clients (0 to f-1) send this round, one for each row of `own` and of the result.
            None: all f of them.
        round: the number of the round from 0, where the caller knows it (a captured round does not). It may spare
            work and never changes the result.
        rule: the rule that the rows will meet, for attacks that try their rows on it.
        last: (d,), the last aggregate, where that rule remembers it.
        seen: what was computed from `honest` already; attacks that share a round share it.

    >>> View(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), None, n=3, f=1).mean
    tensor([2., 3.])
    """

    honest: Tensor
    own: Tensor | None
    n: int
    f: int
    generator: torch.Generator | None = None
    clients: tuple[int, ...] | None = None
    round: int | None = None
    rule: Rule | None = None
    last: Tensor | None = None
    seen: dict[str, Tensor] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        shape = tuple(self.honest.shape)
        if len(shape) != 2 or shape[0] < 1:
            raise ValueError(f"honest rows must have shape (h, d) with h >= 1, got {shape}")
        if not self.honest.is_floating_point():
            raise ValueError(f"honest rows must be floating point, got {self.honest.dtype}")
        if self.f < 0 or self.n < self.f:
            raise ValueError(f"f must be a number from 0 to n={self.n}, got {self.f}")
        wanted = (len(self.who), shape[1])
        if self.own is not None and tuple(self.own.shape) != wanted:
            raise ValueError(f"own gradients must have shape {wanted}, got {tuple(self.own.shape)}")

    @property
    def who(self) -> Sequence[int]:
        """The Byzantine clients that send this round, in the order of the rows."""
        return range(self.f) if self.clients is None else self.clients

    @property
    def mean(self) -> Tensor:
        """(d,) mean of the honest rows, computed once a round; not to be changed."""
        if "mean" not in self.seen:
            self.seen["mean"] = self.honest.mean(0)
        return self.seen["mean"]

    @property
    def away(self) -> Tensor:
        """(h, d) the honest rows minus their mean, in float32 at least; computed once a round and not to be changed."""
        if "away" not in self.seen:
            self.seen["away"] = self.honest.to(torch.promote_types(self.honest.dtype, torch.float32)) - self.mean
        return self.seen["away"]

    @property
    def spread(self) -> Tensor:
        """() the honest spread: the root of the mean squared distance of the honest rows from their mean."""
        if "spread" not in self.seen:
            self.seen["spread"] = torch.linalg.vector_norm(self.away) / len(self.away) ** 0.5
        return self.seen["spread"]

    def require_own(self, attack: object) -> Tensor:
        """(f, d) the Byzantine clients' own gradients; refused where nobody computed them."""
        if self.own is None and not len(self.who):
            return self.allot()
        if self.own is None:
            raise ValueError(f"own must be the gradients that {type(attack).__name__} sends, got None")
        return self.own

    def send(self, row: Tensor) -> Tensor:
        """(d,) or (1, d) -> (f, d): every client sends the same row; the row is stored once."""
        return row.expand(len(self.who), self.honest.shape[1])

    def pick(self, rows: Tensor) -> Tensor:
        """The rows of those who send, of something that has one for each Byzantine client."""
        if self.clients is None:
            return rows
        # Stacked from views of the rows: a list of indices would have to travel to the device.
        return torch.stack([rows[k] for k in self.clients]) if self.clients else rows[:0]

    def allot(self) -> Tensor:
        """(f, d) not yet written, of the dtype and on the device of the honest rows."""
        return self.honest.new_empty((len(self.who), self.honest.shape[1]))
