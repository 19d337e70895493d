"""What is remembered of a run: few points, small enough that a thousand runs fit in one file."""

from __future__ import annotations

import base64
import math
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

POINTS = 150
"""The most points of a curve that are kept."""

CURVES = (
    *("rounds", "loss", "tau", "honest_distance", "byzantine_distance"),
    *("byzantine_kept", "honest_dropped", "weights"),
)


def stride(rounds: int, full: bool) -> int:
    """Every how many rounds a point is kept."""
    return 1 if full else max(1, math.ceil(rounds / POINTS))


@dataclass
class Trace:
    """Curves of one run, a point for each kept round.

    Args:
        n: how many clients.
        f: how many of them are Byzantine.
        rounds: which rounds were kept.
        loss: training loss of the honest clients.
        tau: the rule's radius, for rules that have one.
        honest_distance: mean distance of the honest clients from the rule's centre; None for rules that have none.
        byzantine_distance: the same of the Byzantine clients.
        byzantine_kept: how many Byzantine clients were not dropped.
        honest_dropped: how many honest clients were dropped.
        weights: each client's share in the step; NaN for one that was not asked in the round.
    """

    n: int
    f: int
    rounds: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    tau: list[float | None] = field(default_factory=list)
    honest_distance: list[float | None] = field(default_factory=list)
    byzantine_distance: list[float | None] = field(default_factory=list)
    byzantine_kept: list[int] = field(default_factory=list)
    honest_dropped: list[int] = field(default_factory=list)
    weights: list[list[float]] = field(default_factory=list)

    def add(self, t: int, loss: float, tau: float | None, weights: Tensor, dropped: Tensor, reach: Tensor) -> None:
        """Keep round t: weights (n,), NaN for one not asked; who was dropped (n,); distances (n,), NaN if unknown."""
        part = ~weights.isnan()
        h = self.n - self.f
        self.rounds.append(t)
        self.loss.append(loss)
        self.tau.append(tau)
        self.honest_distance.append(_mean(reach[:h]))
        self.byzantine_distance.append(_mean(reach[h:]))
        self.byzantine_kept.append(int((part & ~dropped)[h:].sum()))
        self.honest_dropped.append(int((part & dropped)[:h].sum()))
        self.weights.append(weights.tolist())

    def pack(self) -> dict[str, Any]:
        """As JSON takes it: losses and tau to four digits, weights as one byte each."""
        table = np.asarray(self.weights, dtype=np.float64).reshape(len(self.rounds), self.n)
        most = float(np.nanmax(table, initial=0.0)) or 1.0
        levels = np.where(np.isnan(table), 255, np.round(np.nan_to_num(table) / most * 254)).astype(np.uint8)
        return {
            "rounds": self.rounds,
            "loss": [_short(v) for v in self.loss],
            **{name: _pack(getattr(self, name)) for name in ("tau", "honest_distance", "byzantine_distance")},
            "byzantine_kept": self.byzantine_kept,
            "honest_dropped": self.honest_dropped,
            "weights": base64.b64encode(zlib.compress(levels.tobytes(), 9)).decode(),
            "most": _short(most),
        }


def unpack_weights(packed: dict[str, Any], n: int) -> Tensor:
    """The weights (points, n) of a packed trace; NaN where a client was not asked."""
    levels = np.frombuffer(zlib.decompress(base64.b64decode(packed["weights"])), dtype=np.uint8).reshape(-1, n)
    weights: Tensor = torch.from_numpy(levels.astype(np.float64)) / 254 * packed["most"]
    weights[torch.from_numpy(levels == 255)] = math.nan
    return weights


def _mean(values: Tensor) -> float | None:
    known = values[values.isfinite()]
    return float(known.mean()) if len(known) else None


def _pack(values: list[float | None]) -> list[float | None] | None:
    return None if all(value is None for value in values) else [_short(value) for value in values]


def _short(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.4g}")
