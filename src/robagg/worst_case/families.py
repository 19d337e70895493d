"""Where Byzantine rows are placed at first: families that have broken one rule or another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Draw:
    """What a family draws from: honest rows (h, d) of mean 0 and variance 1, f, and a generator."""

    honest: Tensor
    f: int
    generator: torch.Generator
    axes: Tensor
    """(r, d) the directions of the honest rows, the one with most variance first."""

    def normal(self, *size: int) -> Tensor:
        return torch.randn(*size, generator=self.generator, dtype=torch.float64)

    def uniform(self) -> float:
        return float(torch.rand((), generator=self.generator, dtype=torch.float64))

    def pick(self, below: int) -> int:
        return int(torch.randint(below, (), generator=self.generator))

    def way(self) -> Tensor:
        """A unit vector (d,): an honest axis, an honest row, against the first half of them, or any."""
        h = len(self.honest)
        ways = (
            lambda: self.axes[0],
            lambda: self.axes[self.pick(len(self.axes))],
            lambda: self.honest[self.pick(h)],
            lambda: -self.honest[: max(1, h // 2)].mean(dim=0),
            lambda: self.normal(self.honest.shape[1]),
        )
        way: Tensor = ways[self.pick(len(ways))]() + 1e-9 * self.normal(self.honest.shape[1])
        way /= way.norm()
        return way

    def own(self) -> Tensor:
        """(f, d) a deviation of each row's own, as large as honest ones: orthogonal mixes of them."""
        h = len(self.honest)
        mixes: Tensor = torch.linalg.qr(self.normal(h, h))[0][: self.f]
        return mixes @ self.honest


def place(draw: Draw, family: str) -> Tensor:
    """Rows (f, d) of a family."""
    return FAMILIES[family](draw, 2.5 * draw.uniform(), draw.way())


Place = Callable[[Draw, float, Tensor], Tensor]


def _split(draw: Draw, distance: float, way: Tensor) -> Tensor:
    side = draw.way() * 1.5 * draw.uniform()
    placed: Tensor = distance * way + side * (1 - 2 * (torch.arange(draw.f) % 2).double())[:, None]
    return placed


def _spread(draw: Draw, distance: float, way: Tensor) -> Tensor:
    d = len(way)
    placed: Tensor = distance * way + draw.normal(draw.f, d) * d**-0.5 * 1.3 * draw.uniform()
    return placed


def _surround(draw: Draw, distance: float, way: Tensor) -> Tensor:
    outermost = draw.honest[draw.honest.norm(dim=1).argmax()]
    placed: Tensor = (
        outermost * (0.5 + draw.uniform()) + draw.uniform() * draw.normal(draw.f, len(way)) * len(way) ** -0.5
    )
    return placed


def _mimic(draw: Draw, distance: float, way: Tensor) -> Tensor:
    few = (draw.honest @ way).topk(min(1 + draw.pick(3), len(draw.honest))).indices
    copied = draw.honest[few[torch.arange(draw.f) % len(few)]]
    placed: Tensor = copied + 0.12 * draw.normal(draw.f, len(way)) * len(way) ** -0.5
    return placed


def _decoy(draw: Draw, distance: float, way: Tensor) -> Tensor:
    times = torch.ones(draw.f, 1, dtype=torch.float64)
    times[0] = 2 + 10 * draw.uniform()
    placed: Tensor = distance * times * way + draw.uniform() * draw.own()
    return placed


def _ladder(draw: Draw, distance: float, way: Tensor) -> Tensor:
    placed: Tensor = (
        distance * torch.linspace(0.3, 1.7, draw.f, dtype=torch.float64)[:, None] * way + draw.uniform() * draw.own()
    )
    return placed


def _far(draw: Draw, distance: float, way: Tensor) -> Tensor:
    placed: Tensor = 10 ** (2 * draw.uniform()) * (way + draw.own()) + distance * way
    return placed


FAMILIES: dict[str, Place] = {
    "one place": lambda draw, distance, way: (distance * way).repeat(draw.f, 1),
    "jitter": lambda draw, distance, way: distance * way + 1.2 * draw.uniform() * draw.own(),
    "tight heap": lambda draw, distance, way: distance * way + (0.05 + 0.2 * draw.uniform()) * draw.own(),
    "two groups": _split,
    "spread": _spread,
    "surround": _surround,
    "mimics": _mimic,
    "decoy": _decoy,
    "ladder": _ladder,
    "far": _far,
}
"""Families by name."""
