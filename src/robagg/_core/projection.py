"""Rows by few numbers: their distances survive a projection in a direction that nobody knew beforehand."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from secrets import randbits

import numpy as np
import torch
from torch import Tensor

from robagg import kernels
from robagg.kernels.types import Rows

DISTANCES = ("auto", "exact", "projected")
"""What a call may ask for."""
MANY = 512
"""Rows from which projecting is worth it where nobody says."""
WORTH = 4
"""How many times as many numbers rows must have as their projections, for the same."""
GROUP = 16
"""Blocks of columns whose signs are drawn at a time."""


def count_numbers(n: int) -> int:
    """The numbers k that n rows are projected onto, a power of 2: fewer of them for more rows, to bound the work.

    >>> [count_numbers(n) for n in (512, 1000, 1025, 3000, 10000)]
    [4096, 4096, 2048, 1024, 1024]
    """
    return max(1024, min(4096, 1 << (22 - math.ceil(math.log2(n)))))


@dataclass(frozen=True)
class Projection:
    """A projection onto k numbers, drawn by a seed: each column's number is added, with a sign, to one of k.

    Squared distances are right in expectation, with a standard deviation of at most sqrt(2/k) of them.
    """

    seed: int
    k: int

    @property
    def deviation(self) -> float:
        """The standard deviation of squared distances, as a part of them."""
        return math.sqrt(2 / self.k)

    def apply(self, leaves: Sequence[Rows], dtype: torch.dtype) -> Tensor:
        """The rows (n, k) of which leaf by leaf the numbers are given."""
        first, many = leaves[0], kernels.choose_many(leaves[0][0])
        out = torch.zeros(len(first), self.k, dtype=dtype, device=first[0].device)
        for leaf, columns, signs, shifts in self._draw([len(rows[0]) for rows in leaves]):
            rows = leaves[leaf]
            part = rows[:, columns] if isinstance(rows, Tensor) else [row[columns] for row in rows]
            many.project(part, signs.to(out), shifts, out)
        return out

    def _draw(self, sizes: Sequence[int]) -> Iterator[tuple[int, slice, Tensor, Tensor]]:
        """The same for every call: leaf, a range of its columns, their signs, and the shifts of their blocks."""
        source = np.random.default_rng(self.seed)
        width = GROUP * self.k
        for leaf, size in enumerate(sizes):
            for j in range(0, size, width):
                columns = slice(j, min(j + width, size))
                count = columns.stop - j
                bits = np.unpackbits(np.frombuffer(source.bytes(-(-count // 8)), dtype=np.uint8))[:count]
                shifts = source.integers(self.k, size=-(-count // self.k))
                yield leaf, columns, torch.from_numpy(bits.astype(np.float32) * 2 - 1), torch.from_numpy(shifts)


def choose_projection(distances: str, leaves: Sequence[Rows], generator: torch.Generator | None) -> Projection | None:
    """The projection for these rows, or None: it is drawn again each time, so that nobody can prepare for it.

    Args:
        distances: "exact", "projected", or "auto": projected for many rows of many numbers.
        leaves: the rows.
        generator: where the seed comes from; None: from the operating system.
    """
    n, d = len(leaves[0]), sum(len(rows[0]) for rows in leaves)
    k = count_numbers(n)
    if distances == "exact" or d <= k or (distances == "auto" and (n < MANY or d < WORTH * k)):
        return None
    if generator is None:
        return Projection(randbits(128), k)
    return Projection(int(torch.randint(2**62, (), generator=generator, device=generator.device)), k)
