"""SMEA: the rows that vary least in the direction in which they vary most."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations
from typing import ClassVar

import torch
from torch import Tensor

from robagg._core.choosing import settle
from robagg._core.outcome import Weights
from robagg._core.rule import GramRule
from robagg._core.sketch import Sketch
from robagg._core.tolerance import F

MOST = 200_000
"""Choices of n-f rows that are searched: n = 20 has fewer for any f."""
AT_ONCE = 4096


@dataclass(frozen=True)
class SMEA(GramRule):
    """Smallest maximum eigenvalue averaging: the mean of the n-f rows whose covariance has the least top eigenvalue.

    The search is exact, over C(n, f) choices: at most 200,000, which is any f with n = 20 and f = 3 with n = 100.
    Beyond that it refuses. Ties: the first such rows.

    Args:
        f: how many rows may be Byzantine (a number, a share, or None for the most that n allows).

    Example:
        >>> SMEA(f=1)(torch.tensor([[1.0], [2.0], [3.0], [50.0]]))
        tensor([2.])

    References:
        Allouah, Guerraoui, Gupta, Pinot, Stephan: On the Privacy-Robustness-Utility Trilemma in Distributed Learning,
        ICML 2023, arXiv:2302.04787.
    """

    maps_well: ClassVar[bool] = False
    captures: ClassVar[bool] = False
    f: F = None

    def weights(self, sketch: Sketch) -> Weights:
        n, h = sketch.n, sketch.n - sketch.f
        if (choices := math.comb(n, sketch.f)) > MOST:
            raise ValueError(
                f"SMEA: choices of n-f rows must be at most {MOST}, got {choices} with n={n}, f={sketch.f}"
            )
        gram = settle(sketch).gram[:n, :n]
        share = torch.zeros(n, dtype=torch.float64, device=gram.device)
        kept = find_flattest(gram, choose_rows(n, h).to(gram.device))
        return Weights(sketch.on_rows(share.index_fill(0, kept, 1 / h)))


def find_flattest(gram: Tensor, choices: Tensor) -> Tensor:
    """The choice (h,) among choices (K, h) of rows with inner products (n, n) that has the least top eigenvalue."""
    batches = torch.tensor_split(choices, -(-len(choices) // AT_ONCE))
    return choices[torch.cat([torch.linalg.eigvalsh(centre(gram, rows))[:, -1] for rows in batches]).argmin()]


def centre(gram: Tensor, rows: Tensor) -> Tensor:
    """(K, h, h): the inner products of each choice of rows (K, h) about its mean."""
    part = gram[rows[:, :, None], rows[:, None]]
    means = part.mean(dim=1, keepdim=True)
    return part - means - means.mT + means.mean(dim=2, keepdim=True)


@lru_cache(maxsize=4)
def choose_rows(n: int, h: int) -> Tensor:
    """(C(n, h), h) every choice of h of n rows, in the order of the rows."""
    flat: Iterator[int] = chain.from_iterable(combinations(range(n), h))
    return torch.tensor(list(flat), device="cpu").view(-1, h)
