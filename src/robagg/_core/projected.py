"""The passes where distances are those of projected rows: medians, sorts and the sum of rows stay exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from robagg import kernels
from robagg._core.passes import Passes
from robagg._core.projection import Projection
from robagg._core.sketch import Sketch, leave
from robagg.kernels.types import Rows


class ProjectedPasses(Passes):
    """Passes over rows whose inner products are those of their projections, which mix as the rows do.

    Where a rule asks for distances alone their centre is the median of the projections, and V is theirs.
    """

    def __init__(
        self, leaves: Sequence[Rows], anchors: dict[str, Sequence[Tensor] | None], projection: Projection, **more: Any
    ) -> None:
        super().__init__(leaves, anchors, **more)
        self.projection = projection
        self._dtype = torch.float32
        if any(self.compute(rows) == torch.float64 for rows in leaves):
            self._dtype = torch.float64
        self._many = kernels.choose_many(leaves[0][0])
        self._points: Tensor | None = None
        """(n+a, k) rows and anchors, about their own median (k,)."""
        self._spread = torch.zeros((), dtype=torch.float64, device=self.device)
        self._own = torch.zeros(projection.k, dtype=self._dtype, device=self.device)

    def sketch(self, f: int, *, floor: bool = False) -> tuple[list[Tensor], Sketch]:
        points = self._project()
        mix = None if self.matrix is None else self.matrix[: self.n, : self.sent].contiguous()
        medians, spread, square = self._find_medians(mix)
        centre = self.projection.apply([m[None] for m in medians], self._dtype)[0] - self._own
        points = points if self.matrix is None else self._mix(self.matrix)
        gram = self._multiply(points, centre)
        sketch = self._look_at(gram, spread, square, self.n, f, self._dtype)
        sketch = self._for(sketch, sketch.gram, f)
        if mix is None or not (floor and self.shared):
            return medians, sketch
        least = leave(mix, self._sketch_sent()[1].gram.diagonal()[: self.sent], self._sent_votes)
        return medians, replace(sketch, spread=torch.maximum(sketch.spread, least))

    def _sketch_sent(self) -> tuple[list[Tensor], Sketch]:
        if self._raw is None:
            points = self._project()
            gram = self._multiply(points)
            self._raw = [], self._look_at(gram, self._spread, None, self.sent, 0, self._dtype)
        return self._raw

    def _project(self) -> Tensor:
        if self._points is None:
            self.deviation = self.projection.deviation
            points = self.projection.apply(self.leaves, self._dtype)
            if self.anchors:
                ends = [self._project_anchor(point) for point in self.anchors.values()]
                points = torch.cat([points, *ends])
            votes = self._sent_votes if self.outnumbered else None
            self._spread, _ = self._many.find_spread(points[: self.sent], self._own, votes=votes)
            self._points = points.sub_(self._own)
        return self._points

    def _project_anchor(self, point: Sequence[Tensor] | None) -> Tensor:
        if point is None:
            return torch.zeros_like(self._own)[None]
        return self.projection.apply([leaf[None] for leaf in point], self._dtype)

    def _mix_gram(self, matrix: Tensor, gram: Tensor) -> Tensor:
        if matrix.shape[1] <= self.projection.k:
            return super()._mix_gram(matrix, gram)
        return self._multiply(self._mix(matrix))

    def _mix(self, matrix: Tensor) -> Tensor:
        """The projections behind the pre-aggregators (m+a, k)."""
        points: Tensor = self._many.multiply(matrix, self._project().T.contiguous(), compute=self._dtype)
        return points.to(self._dtype)

    def _multiply(self, points: Tensor, centre: Tensor | None = None) -> Tensor:
        products: Tensor = self._many.multiply(points, centre=centre, compute=self._dtype)
        return products

    def _find_medians(self, mix: Tensor | None) -> tuple[list[Tensor], Tensor, Tensor | None]:
        """The median of the rows, leaf by leaf, V, and the median's squared length if they are mixed."""
        medians, spread = [], torch.zeros((), dtype=torch.float64, device=self.device)
        square = None if mix is None else spread.clone()
        for rows in self.leaves:
            median = torch.empty(len(rows[0]), dtype=self.compute(rows), device=self.device)
            found, length = self._many.find_spread(rows, median, mix=mix, votes=self.votes)
            medians.append(median)
            spread += found
            if square is not None and length is not None:
                square += length
        return medians, spread, square
