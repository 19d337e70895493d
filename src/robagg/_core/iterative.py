"""One loop for the rules that walk to a centre: they differ only in how strongly a row pulls at its distance."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from robagg import kernels
from robagg._core.checks import read_whole
from robagg._core.contract import Attribution
from robagg._core.outcome import Pull, Treatment, Weights
from robagg._core.rule import GramRule
from robagg._core.sketch import Sketch
from robagg.kernels.types import Walked


class IterativeRule(GramRule):
    """v <- v + sum_i k_i (x_i - v), a number of times, where k_i is a function of the distance |x_i - v|."""

    iterations: int
    treatment: ClassVar[Treatment] = Treatment.REJECTED
    origin: ClassVar[str | None] = None
    """The anchor it starts from; None: the median."""
    length: ClassVar[str | None] = None
    """Its parameter that is a length (a radius, a width), if it has one."""
    kernel: ClassVar[str | None] = None
    """The formula by which the kernels know its whole loop. A subclass may pull otherwise, so it states its own."""

    def __post_init__(self) -> None:
        super().__post_init__()
        read_whole(self, "iterations", 1)
        if not isinstance(self.floor, bool):
            raise ValueError(f"{type(self).__name__}: floor must be True or False, got {self.floor!r}")

    def start(self, sketch: Sketch) -> Tensor:
        """Coefficients (n+a,) of the point the loop starts from."""
        return sketch.centre() if self.origin is None else sketch.at(self.origin)

    @abstractmethod
    def pull(self, sketch: Sketch, c: Tensor, squared: Tensor) -> Pull:
        """The pull of rows at squared distances (n,) from the point with coefficients c (n+a,)."""

    def weights(self, sketch: Sketch) -> Weights:
        if (fused := self._walk_fused(sketch)) is not None:
            return Weights(*fused, self.treatment)
        with Attribution(self, "start"), Attribution(self, "pull"):
            c = self.start(sketch)
            for _ in range(self.iterations):
                squared = sketch.squared_distances(c)
                pull = self.pull(sketch, c, squared)
                c = pull.move(sketch, c)
        return Weights(c, pull.tau, pull.outside, squared.sqrt(), self.treatment)

    def _walk_fused(self, sketch: Sketch) -> Walked | None:
        """All steps in one kernel, for the formulas that have one on the sketch's device."""
        formula = type(self).__dict__.get("kernel")
        if formula is None:
            return None
        length = None if self.length is None else getattr(self, self.length)
        return kernels.walk(
            formula,
            sketch.gram,
            sketch.spread,
            sketch.n,
            sketch.f * sketch.vote,
            self.iterations,
            parameter=None if length is None else length * sketch.unit,
            votes=None if sketch.votes is None else sketch.votes.double() * sketch.vote,
            rounding=sketch.rounding,
            blur=sketch.blur if isinstance(sketch.blur, Tensor) else None,
            anchor=None if self.origin is None else sketch.anchors.index(self.origin),
        )


def estimate_tau(sketch: Sketch, c: Tensor) -> Tensor:
    """tau^2 = (n-f)/f (|v - m|^2 + V), the paper's estimate; infinite for f = 0."""
    if sketch.f == 0:
        return torch.full_like(sketch.spread, torch.inf)
    return (sketch.total - sketch.f) / sketch.f * (sketch.squared_norm(c) + sketch.spread)
