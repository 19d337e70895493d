"""A rule of your own. Try it: robagg sweep examples/sweeps/my_rule.toml

A rule is a frozen dataclass whose fields are its parameters. One that decides by distances is a GramRule and writes
`weights`: it gets a sketch of the rows (their median and all inner products about it) and gives each row a coefficient.
Broken rows, f against n, huge numbers and the verdict are taken care of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from robagg import F, GramRule, Sketch, Weights


@dataclass(frozen=True)
class NearMedian(GramRule):
    """The mean of the n-f rows nearest to the coordinate-wise median.

    Args:
        f: how many rows may be Byzantine (a number, a share, or None for the most that n allows).
    """

    needs_median: ClassVar[bool] = True
    f: F = None

    def weights(self, sketch: Sketch) -> Weights:
        distances = sketch.squared_distances(sketch.centre())
        kept = sketch.n - sketch.f
        nearest = distances.sort(stable=True).indices[:kept]
        shares = torch.zeros_like(distances).scatter(0, nearest, 1 / kept)
        return Weights(sketch.on_rows(shares))
