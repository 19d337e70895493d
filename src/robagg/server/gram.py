"""What a rule by distances saw of a round, small enough to be kept where the updates are not."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from robagg._core.passes import Passes
from robagg._core.stack import FAR, Stack

MOST = 200
"""For more clients the matrix is left out: it grows with their square."""


@dataclass(frozen=True)
class Gram:
    """The Gram matrix of the sound replies, and of the model that was sent out, about the median of the replies.

    It is kept as lengths in float64 and cosines in float32, so that one far reply costs the others no digit.

    Args:
        clients: whose replies the rows are, in order; the last point behind them is the model that was sent out.
        lengths: (n+1,) each point's distance from the median; at most 2^480.
        cosines: the upper triangle without the diagonal, row by row: little-endian float32 in base64.
        spread: V, the sum over coordinates of MAD^2.
        note: why the matrix was left out; empty where it is there.
    """

    clients: tuple[str, ...] = ()
    lengths: tuple[float, ...] = ()
    cosines: str = ""
    spread: float = 0.0
    note: str = ""

    def matrix(self) -> Tensor:
        """(n+1, n+1) float64: the inner products of the replies and, last, of the model, about the median."""
        if self.note:
            raise ValueError(f"the round has no Gram matrix: {self.note}")
        size = len(self.clients) + 1
        try:
            cosines, above = np.eye(size), np.frombuffer(base64.b64decode(self.cosines), "<f4")
            fits = len(self.lengths) == size and len(above) == size * (size - 1) // 2 and bool((abs(above) <= 1).all())
            fits = fits and all(0 <= number <= FAR**2 for number in (*self.lengths, self.spread))
        except (TypeError, ValueError):
            fits = False
        if not fits:
            raise ValueError("the Gram matrix must be as it was measured, and was changed")
        cosines[np.triu_indices(size, 1)] = above
        lengths = torch.tensor(self.lengths, dtype=torch.float64)
        upper = torch.from_numpy(cosines)
        return (upper + upper.T - torch.eye(size, dtype=torch.float64)) * lengths[:, None] * lengths

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Gram:
        """What a line of the journal holds."""
        return cls(**{**entry, "clients": tuple(entry["clients"]), "lengths": tuple(entry["lengths"])})


def measure_gram(stack: Stack, clients: list[str], model: dict[str, Tensor] | None) -> Gram:
    """The matrix of the rows that a stack holds, whose clients are named in order; a model of None is the origin."""
    n = len(clients)
    if model is not None and not all(bool(leaf.isfinite().all()) for leaf in model.values()):
        return Gram(note="the model that was sent out is not finite")
    if n > MOST:
        return Gram(note=f"n={n} replies, and it is kept for at most {MOST}")
    last = None if model is None else stack.flatten(model)
    passes = Passes(stack.leaves, {"model": last})
    _, sketch = passes.sketch(0)
    back = 1.0
    if bool(passes.alarm):
        ready, back = stack.tamed()
        scaled = None if last is None else [leaf.double() / back for leaf in last]
        _, sketch = Passes(ready.leaves, {"model": scaled}, wide=True, unit=1 / back).sketch(0)
    gram = sketch.gram.cpu()
    roots = gram.diagonal().clamp(min=0).sqrt()
    scale = torch.where(roots > 0, roots, 1.0)
    cosines = (gram / scale[:, None] / scale).clamp(-1, 1).numpy().astype("<f4")
    upper = cosines[np.triu_indices(n + 1, 1)]
    return Gram(
        clients=tuple(clients),
        lengths=tuple((roots * back).clamp(max=FAR).tolist()),
        cosines=base64.b64encode(upper.tobytes()).decode(),
        spread=min(float(sketch.spread) * back**2, FAR**2),
    )
