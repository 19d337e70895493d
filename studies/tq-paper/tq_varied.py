"""TQ with what the paper leaves open done otherwise: where it starts, and a factor on the MADs.

A plugin, for `robagg sweep` and `robagg.load_plugin`. The hash of this file is part of the keys of its runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from robagg import TQ, Pull, Sketch

NORMAL = 1.4826
"""With this factor the MAD of normal data estimates their standard deviation."""


@dataclass(frozen=True)
class TQVaried(TQ):
    """TQ from the mean of all rows instead of their median, or with MADs multiplied by a factor, or both.

    From the mean it is not robust: a step takes away a share of the distance at most, so that after ten of them a row
    of size 1e30 among 20 still holds the value at 1e16.

    Args:
        f: how many rows may be Byzantine.
        iterations: steps of the loop.
        from_mean: whether the mean is where it starts.
        factor: on every MAD, so that V is multiplied by its square.

    Example:
        >>> x = torch.tensor([[1.0], [2.0], [3.0], [2.0], [50.0]])
        >>> TQVaried(f=1, from_mean=True)(x)
        tensor([2.0000])

    References:
        As TQ.
    """

    from_mean: bool = False
    factor: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.factor < math.inf:
            raise ValueError(f"factor must be a finite number > 0, got {self.factor!r}")

    def start(self, sketch: Sketch) -> Tensor:
        if not self.from_mean:
            return super().start(sketch)
        return sketch.on_rows(torch.full_like(sketch.gram.diagonal()[: sketch.n], 1 / sketch.n))

    def pull(self, sketch: Sketch, c: Tensor, squared: Tensor) -> Pull:
        return super().pull(replace(sketch, spread=sketch.spread * self.factor**2), c, squared)


@dataclass(frozen=True)
class TQLast(TQ):
    """TQ from the last aggregate instead of the median (the first time from the origin).

    Args:
        f: how many rows may be Byzantine.
        iterations: steps of the loop.

    Example:
        >>> x = torch.tensor([[1.0], [2.0], [3.0], [2.0], [50.0]])
        >>> TQLast(f=1)(x)
        tensor([2.0000])

    References:
        As TQ.
    """

    anchors: ClassVar[tuple[str, ...]] = ("last",)
    remembers: ClassVar[bool] = True
    origin: ClassVar[str | None] = "last"
