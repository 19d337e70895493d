"""Bucketing: means of random groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from robagg._core.checks import read_whole
from robagg._core.mixer import Mixer
from robagg._core.sketch import Sketch


@dataclass(frozen=True)
class Bucketing(Mixer):
    """The rows in random order, s at a time (the last bucket may be short); each bucket's mean goes on.

    The rule behind it works with f' = min(f, (ceil(n/s) - 1)//2): so few rows tolerate no more.
    With client weights a bucket's mean is weighted, and its votes are the sum of theirs.

    Args:
        s: rows in a bucket.

    Example:
        >>> from robagg import Mean
        >>> (Bucketing(s=2) >> Mean())(torch.tensor([[1.0], [2.0], [3.0], [6.0]]))
        tensor([3.])

    References:
        Karimireddy, He, Jaggi: Byzantine-Robust Learning on Heterogeneous Datasets via Bucketing, ICLR 2022,
        arXiv:2006.09365.
    """

    s: int = 2
    needs_distances: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        read_whole(self, "s", 1)

    def matrix(self, sketch: Sketch, *, generator: torch.Generator | None = None) -> Tensor:
        n, device = sketch.n, sketch.gram.device
        # Sorting random numbers, unlike randperm, can be captured in a CUDA graph.
        source = device if generator is None else generator.device
        order = torch.rand(n, generator=generator, device=source, dtype=torch.float64).argsort().to(device)
        bucket = torch.arange(n, device=device) // self.s
        count = self.count_behind(n)
        matrix = sketch.gram.new_zeros(count, len(sketch.gram))
        sizes = (n - self.s * bucket).clamp(max=self.s)
        matrix = matrix.index_put((bucket, order), 1 / sizes.double())
        if sketch.votes is None:
            return matrix
        weighed = (matrix[:, :n] > 0).double() * sketch.votes
        held = weighed.sum(dim=1, keepdim=True)
        means = torch.nn.functional.pad(weighed / held.clamp(min=1), (0, len(sketch.gram) - n))
        return means.where(held > 0, matrix)

    @property
    def joins(self) -> int:
        return self.s

    def votes_behind(self, matrix: Tensor, votes: Tensor) -> Tensor:
        return ((matrix[:, : len(votes)] > 0) * votes).sum(dim=1)

    def count_behind(self, n: int) -> int:
        return -(-n // self.s)

    def tolerance_behind(self, n: int, f: int) -> int:
        return min(f, (n - 1) // 2)
