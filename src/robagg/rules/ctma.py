"""CTMA: the rows nearest to what another rule gives, averaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from robagg._core.choosing import average_least
from robagg._core.outcome import Outcome, Weights
from robagg._core.passes import Passes
from robagg._core.rule import GramRule, Rule, parse
from robagg._core.sketch import Sketch
from robagg._core.tolerance import F
from robagg.rules.cm import CM
from robagg.rules.meamed import check_whole


@dataclass(frozen=True)
class CTMA(GramRule):
    """Centred trimmed meta-aggregation: the mean of the n-f rows nearest to the value of another rule.

    With client weights, of the n-f votes nearest to it. Pre-aggregators stand before CTMA and so before both:
    `nnm >> ctma(base='rfa')`. For a base that remembers, the last value is CTMA's; FoolsGold is given its
    sums.

    Args:
        f: how many rows may be Byzantine (a number, a share, or None for the most that n allows); the base's too.
        base: the other rule, as text or as itself, without an f.

    Example:
        >>> CTMA(f=1, base="rfa")(torch.tensor([[1.0], [2.0], [3.0], [50.0]]))
        tensor([2.])
        >>> str(CTMA(f=1, base="tq(iterations=5)"))
        "ctma(f=1, base='tq(iterations=5)')"

    References:
        Dahan, Levy: Weight for Robustness: A Comprehensive Approach towards Optimal Fault-Tolerant Asynchronous ML,
        NeurIPS 2024, arXiv:2501.09621.
    """

    maps_well: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = True
    needs_median: ClassVar[bool] = True
    rule: ClassVar[Rule]
    """The base, read."""
    f: F = None
    base: str = "cm"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.base, str | Rule):
            raise ValueError(f"CTMA: base must be a rule or its text, got {self.base!r}")
        try:
            base = parse(self.base)
        except ValueError as error:
            raise ValueError(f"CTMA: base must be a rule, got {self.base!r}: {error}") from None
        if base.mixers or isinstance(base, CTMA) or base.f is not None:
            raise ValueError(f"CTMA: base must be another rule, alone and without an f, got {str(base)!r}")
        taken = ["anchors", "remembers", "accumulates", "takes_weights", "captures"]
        taken += ["needs_median", "floor", "scaled"] if isinstance(base, GramRule) else []
        put = {"base": str(base), "rule": base} | {name: getattr(base, name) for name in taken}
        for name, value in put.items():
            object.__setattr__(self, name, value)

    def solve(self, passes: Passes, f: int, shares: Tensor | None) -> Outcome:
        if not isinstance(self.rule, GramRule | CM):
            check_whole(passes)
            passes.add_anchor("base", self.rule.solve(passes, f, shares).values)
        return super().solve(passes, f, shares)

    def weights(self, sketch: Sketch) -> Weights:
        if isinstance(self.rule, GramRule):
            c = self.rule.weights(sketch).coefficients
        else:
            c = sketch.centre() if isinstance(self.rule, CM) else sketch.at("base")
        return average_least(sketch, sketch.squared_distances(c))
