"""Centered clipping: Huber's step with a fixed tau, from the last aggregate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from robagg._core.alias import Alias
from robagg._core.checks import read_positive
from robagg._core.iterative import IterativeRule
from robagg._core.outcome import Pull, Treatment
from robagg._core.sketch import Sketch
from robagg._core.tolerance import F
from robagg.rules.huber import clip


@dataclass(frozen=True)
class CC(IterativeRule):
    """Centered clipping with a fixed radius, from the last aggregate (the first time from the origin).

        v <- v + (1/n) sum_i (x_i - v) min(1, tau/|x_i - v|)

    It remembers: `step` takes the last aggregate as state and hands on the new one. Called as a function it starts
    from the origin, so adding a constant vector to all rows does not just shift the result.

    Args:
        f: how many rows may be Byzantine; used only to judge how many broken rows can be borne.
        tau: the radius to which a row beyond it is clipped.
        iterations: steps of the loop.

    Example:
        >>> rule, x = CC(tau=1.0), torch.tensor([[3.0], [3.0], [100.0]])
        >>> verdict, last = rule.step(x, None)
        >>> verdict.value
        tensor([1.])
        >>> rule.step(x, last)[0].value
        tensor([2.])

    References:
        Karimireddy, He, Jaggi: Learning from History for Byzantine Robust Optimization, ICML 2021, arXiv:2012.10333.
    """

    f: F = None
    takes_weights: ClassVar[bool] = True
    tau: float = 10.0
    iterations: int = 1
    kernel: ClassVar[str | None] = "cc"
    aliases: ClassVar[tuple[str, ...]] = (
        Alias("CenteredClipping", {"m": None, "L": "iterations", "tau": "tau"}, tau=100.0),
    )
    anchors: ClassVar[tuple[str, ...]] = ("last",)
    remembers: ClassVar[bool] = True
    treatment: ClassVar[Treatment] = Treatment.CLIPPED
    length: ClassVar[str | None] = "tau"
    origin: ClassVar[str | None] = "last"

    def __post_init__(self) -> None:
        super().__post_init__()
        read_positive(self, "tau")

    def pull(self, sketch: Sketch, c: Tensor, squared: Tensor) -> Pull:
        return clip(sketch, squared, squared.new_full((), self.tau * sketch.unit), sketch.slack(c))
