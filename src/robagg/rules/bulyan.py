"""Bulyan: what Krum picks, one after another, and of these the values about the median."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from robagg._core.choosing import pick_least, settle
from robagg._core.outcome import Outcome
from robagg._core.passes import Passes
from robagg._core.rule import Rule
from robagg._core.sketch import Sketch
from robagg._core.tolerance import F
from robagg.rules.meamed import average_middle


@dataclass(frozen=True)
class Bulyan(Rule):
    """Krum picks n-2f rows, each among those left; per coordinate, the mean of their n-4f values nearest to the median.

    Krum sums the distances to all rows left but f, itself included. What is proved takes n >= 4f+3: with fewer rows a
    call warns, and the median of the picks is taken at least.

    Args:
        f: how many rows may be Byzantine (a number, a share, or None for the most that n allows).

    Example:
        >>> x = torch.tensor([[1.0], [1.1], [0.9], [1.2], [0.8], [1.0], [50.0]])
        >>> Bulyan(f=1)(x)
        tensor([1.0333])

    References:
        El Mhamdi, Guerraoui, Rouault: The Hidden Vulnerability of Distributed Learning in Byzantium, ICML 2018,
        arXiv:1802.07927.
    """

    f: F = None

    def solve(self, passes: Passes, f: int, shares: Tensor | None) -> Outcome:
        n = passes.n
        if f and n < 4 * f + 3:
            warnings.warn(
                f"{self} protects as proved with n >= 4f+3 rows, got n={n}, f={f}", RuntimeWarning, stacklevel=5
            )
        passes.push(pick_in_turn(passes.distances(f)))
        return average_middle(passes, max(n - 4 * f, 2 - n % 2))


def pick_in_turn(sketch: Sketch) -> Tensor:
    """(n-2f, n+a): the rows that Krum picks, each among those that it left."""
    gone = torch.zeros(sketch.n, dtype=torch.float64, device=sketch.gram.device)
    distances, picked = settle(sketch).pairwise(), []
    for k in range(sketch.n - 2 * sketch.f):
        near = distances.masked_fill(gone > 0, torch.inf).sort(dim=1).values[:, : sketch.n - k - sketch.f]
        picked.append(pick_least(near.sum(dim=1).masked_fill(gone > 0, torch.inf)))
        gone = gone + picked[-1]
    return torch.stack([sketch.on_rows(one) for one in picked])
