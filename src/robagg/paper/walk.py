"""Iterates of a rule, one by one: what the small computations of the paper look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from robagg._core.iterative import IterativeRule
from robagg._core.outcome import Pull
from robagg._core.passes import Passes
from robagg._core.sketch import Sketch
from robagg._core.stack import read
from robagg.paper.claim import Finding


@dataclass(frozen=True)
class Computed:
    """What a small computation gave: a table, what it means, and the numbers of its picture."""

    head: tuple[str, ...]
    lines: list[list[str]]
    findings: list[Finding]
    picture: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Computation:
    """An experiment of the paper without training: done again each time, in seconds."""

    name: str
    title: str
    compute: Callable[[int], Computed]
    """From the number of random draws."""
    draws: int = 1
    quick_draws: int = 1

    def tell_dry(self) -> str:
        """What a dry run says."""
        return f"no runs: {self.name} trains nothing and is computed anew each time, in seconds"


def walk(
    pull: Callable[[Sketch, Tensor, Tensor], Pull], sketch: Sketch, start: Tensor, iterations: int
) -> list[Tensor]:
    """Coefficients (n,) of the iterates, the start first; those of a walk that has come to rest are not repeated."""
    path = [start]
    for _ in range(iterations):
        c = path[-1]
        path.append(pull(sketch, c, sketch.squared_distances(c)).move(sketch, c))
        if bool((path[-1] - c).abs().max() < 1e-13):
            break
    return path


def sketch_rows(x: Tensor, f: int) -> tuple[Tensor, Sketch]:
    """The median (d,) of the rows (n, d) and their sketch about it."""
    medians, sketch = Passes(read(x).leaves, {}).sketch(f)
    return medians[0], sketch


def trace_points(x: Tensor, median: Tensor, path: list[Tensor]) -> Tensor:
    """The iterates (k, d) themselves."""
    return median + torch.stack(path) @ (x - median)


def follow(rule: IterativeRule, x: Tensor, f: int, *, from_mean: bool = False, iterations: int = 100) -> Tensor:
    """The iterates (k, d) of a rule on rows (n, d), from the median or from the mean of all rows.

    Example:
        >>> from robagg import TQ
        >>> x = torch.tensor([[1.0], [1.2], [0.8], [1.0], [50.0]], dtype=torch.float64)
        >>> follow(TQ(f=1), x, 1)[-1]
        tensor([1.], dtype=torch.float64)
    """
    median, sketch = sketch_rows(x, f)
    start = sketch.on_rows(torch.full((sketch.n,), 1 / sketch.n, dtype=torch.float64)) if from_mean else sketch.centre()
    return trace_points(x, median, walk(rule.pull, sketch, start, iterations))
