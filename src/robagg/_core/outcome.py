"""What a rule decides and what comes of it, as data: `Pull` of one step, `Weights` of a sketch, `Outcome` of a call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import torch
from torch import Tensor

from robagg._core.sketch import Sketch
from robagg._core.votes import Votes


class Treatment(Enum):
    """What becomes of a row outside tau."""

    REJECTED = "rejected"
    """It has no part in the value."""
    CLIPPED = "clipped"
    """It counts as if it lay at distance tau."""


@dataclass(frozen=True)
class Pull:
    """How strongly each row pulls in one step: `v <- v + sum_i strength_i (x_i - v)`.

    Args:
        strength: (n,) how far the step goes towards each row.
        tau: () the radius, for formulas that have one.
        outside: (n,) rows beyond tau.

    Example:
        >>> sketch = Sketch(torch.eye(2, dtype=torch.float64), spread=torch.tensor(1.0), n=2, f=0)
        >>> Pull(torch.tensor([0.25, 0.25])).move(sketch, sketch.centre())  # half of the way to the mean of both rows
        tensor([0.2500, 0.2500], dtype=torch.float64)
    """

    strength: Tensor
    tau: Tensor | None = None
    outside: Tensor | None = None

    def move(self, sketch: Sketch, c: Tensor) -> Tensor:
        """Coefficients (n+a,) of the point one step on from the one with coefficients c."""
        return c * (1 - self.strength.sum()) + sketch.on_rows(self.strength)


@dataclass(frozen=True)
class Weights:
    """What a distance rule decides: a coefficient for each row and anchor, and how it came to it.

    Args:
        coefficients: (n+a,) float64: a coefficient for each row and anchor, as `Sketch.on_rows` makes them of weights
            on rows. They have the sum 1; for rules that need the median they have a sum from 0 to 1, and the rest is
            the median's.
        tau: () the radius in the last step, for rules that have one.
        outside: (n,) bool: rows outside tau in the last step.
        reach: (n,) distances that the last step compared with tau.
        treatment: what becomes of a row outside tau: it is rejected, or clipped to tau.
        left: (n,) what a filter left of each row's weight, 1 being all of it.
        scale: () how far rows are from their mean, as the filter reckons.

    Example:
        >>> sketch = Sketch(torch.eye(3, dtype=torch.float64), spread=torch.tensor(1.0), n=3, f=1)
        >>> Weights(sketch.on_rows(torch.tensor([0.5, 0.5, 0.0]))).coefficients  # the mean of the first two rows
        tensor([0.5000, 0.5000, 0.0000])
    """

    coefficients: Tensor
    tau: Tensor | None = None
    outside: Tensor | None = None
    reach: Tensor | None = None
    treatment: Treatment = Treatment.REJECTED
    left: Tensor | None = None
    scale: Tensor | None = None

    def of_sent(self, matrix: Tensor) -> Weights:
        """The same of the rows that were sent, which speak through others where a matrix (n, sent) is not 0.

        A sent row is outside when every row it speaks through is, and as near as the nearest of them.
        """
        speaks = matrix != 0
        outside = None if self.outside is None else (self.outside[:, None] | ~speaks).all(dim=0)
        reach = None if self.reach is None else self.reach[:, None].where(speaks, torch.inf).amin(dim=0)
        left = None if self.left is None else self.left[:, None].where(speaks, 0.0).amax(dim=0)
        return replace(self, outside=outside, reach=reach, left=left)


@dataclass(frozen=True)
class Outcome:
    """A rule's result on the rows that were not broken, as tensors on their device."""

    values: list[Tensor]
    """The value, leaf by leaf."""
    weights: Tensor | None
    """(n,) each row's share in the value; without a verdict, this and what follows the alarm may be None."""
    alarm: Tensor
    """() whether a pass met numbers that it cannot compute with."""
    median_weight: Tensor | None = None
    tau: Tensor | None = None
    outside: Tensor | None = None
    """(n,) rows all of whose mixed rows lie outside tau."""
    reach: Tensor | None = None
    """(n,) distances that the last step compared with tau."""
    treatment: Treatment = Treatment.REJECTED
    votes: Votes | None = None
    """What the clients counted, where they did not count alike."""
    chosen: bool = False
    """Whether a row without weight was simply not chosen."""
    left: Tensor | None = None
    """(n,) what a filter left of the weight of each row, or of the mixed row through which it counts most."""
    scale: Tensor | None = None
    """() how far rows are from their mean, as the filter reckons."""
    alike: bool = False
    """Whether the filter looks for rows that point the same way."""

    deviation: float | None = None
    """The standard deviation of squared distances, as a part of them, where they are those of projected rows."""

    def scaled(self, back: float) -> Outcome:
        """The outcome on rows that are `back` times as large; what rounding takes beyond float64 becomes its limit."""

        def scale(x: Tensor) -> Tensor:
            limit = torch.finfo(torch.float64).max
            return (x * back).clamp(-limit, limit)

        tau = None if self.tau is None else self.tau * back
        reach = None if self.reach is None else scale(self.reach)
        length = None if self.scale is None else scale(self.scale)
        return replace(self, values=[scale(value) for value in self.values], tau=tau, reach=reach, scale=length)
