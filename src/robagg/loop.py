"""One loop for the rules that walk to a centre: they differ only in how strongly a row pulls at its distance."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from robagg.rule import GramRule, Weights
from robagg.sketch import Sketch


@dataclass(frozen=True)
class Pull:
    """How strongly each row pulls in one step: `v <- v + sum_i strength_i (x_i - v)`."""

    strength: Tensor
    """(n,)"""
    tau: Tensor | None = None
    outside: Tensor | None = None


class Loop(GramRule):
    """v <- v + sum_i k_i (x_i - v), a number of times, where k_i is a function of the distance |x_i - v|."""

    iterations: int
    verb: ClassVar[str] = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.iterations, bool) or not isinstance(self.iterations, int) or self.iterations < 1:
            raise ValueError(f"{type(self).__name__} wants iterations >= 1, got {self.iterations!r}")

    def start(self, sketch: Sketch) -> Tensor:
        """Coefficients (n+a,) of the point the loop starts from."""
        return sketch.centre()

    @abstractmethod
    def pull(self, sketch: Sketch, c: Tensor, squared: Tensor) -> Pull:
        """The pull of rows at squared distances (n,) from the point with coefficients c (n+a,)."""

    def weights(self, sketch: Sketch) -> Weights:
        c = self.start(sketch)
        for _ in range(self.iterations):
            squared = sketch.squared_distances(c)
            pull = self.pull(sketch, c, squared)
            c = c * (1 - pull.strength.sum()) + sketch.on_rows(pull.strength)
        return Weights(c, pull.tau, pull.outside, squared.sqrt(), self.verb)


def estimate_tau(sketch: Sketch, c: Tensor) -> Tensor:
    """tau^2 = (n-f)/f (|v - m|^2 + V), the paper's estimate; infinite for f = 0."""
    if sketch.f == 0:
        return torch.full_like(sketch.spread, torch.inf)
    return (sketch.n - sketch.f) / sketch.f * (sketch.squared_norm(c) + sketch.spread)


def check_positive(rule: object, **parameters: float) -> None:
    """Parameters that must be finite numbers above 0."""
    for name, value in parameters.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            raise ValueError(f"{type(rule).__name__} wants {name} > 0, got {value!r}")
