"""FLTrust: rows count by how far they point where a trusted one does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from robagg._core.outcome import Weights
from robagg._core.rule import GramRule
from robagg._core.sketch import Sketch
from robagg._core.tolerance import F
from robagg.rules.monna import find_root


@dataclass(frozen=True)
class FLTrust(GramRule):
    """The rows, scaled to the length of a trusted row g, averaged by how far they point the same way.

        v = sum_i w_i (|g| / |x_i|) x_i / sum_i w_i,    w_i = max(0, cos(x_i, g))

    g is the server's own row, from a small set of data that it trusts, and comes with the call as `root`. Without one
    the coordinate-wise median stands in for it, and the call warns of that. Where no row points its way the value is
    the origin. It measures from the origin, so adding a constant vector to all rows does not just shift the result.

    Args:
        f: how many rows may be Byzantine; used only to judge how many broken rows can be borne.

    Example:
        >>> x = torch.tensor([[2.0, 0.0], [0.0, 5.0], [-90.0, 0.0]])
        >>> FLTrust(f=1)(x, root=torch.tensor([1.0, 0.0]))
        tensor([1., 0.])

    References:
        Cao, Fang, Liu, Gong: FLTrust: Byzantine-robust Federated Learning via Trust Bootstrapping, NDSS 2021,
        arXiv:2012.13995.
    """

    f: F = None
    takes_weights: ClassVar[bool] = True
    needs_median: ClassVar[bool] = True
    anchors: ClassVar[tuple[str, ...]] = ("origin", "root")

    def weights(self, sketch: Sketch) -> Weights:
        tiny = torch.finfo(torch.float64).tiny
        origin = sketch.at("origin")
        away = find_root(sketch) - origin
        product = sketch.gram @ away
        along = (product - origin @ product)[: sketch.n]  # <x_i, g>
        # Of a row far shorter than its distance from the median the length is rounding alone: no scale may follow it.
        lengths = sketch.squared_distances(origin).maximum(sketch.slack(origin)).sqrt().clamp(min=tiny**0.5)
        length = sketch.squared_norm(away).sqrt().clamp(min=tiny**0.5)
        trust = sketch.count((along / lengths / length).clamp(0, 1))
        scale = trust / trust.sum().clamp(min=tiny) * (length / lengths)
        # What the rows leave of one is the origin's, and none the median's.
        return Weights(sketch.on_rows(scale) + (1 - scale.sum()) * origin)
