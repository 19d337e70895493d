"""What a rule sees: the rows behind the pre-aggregators, through passes over the stack that never form them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from robagg import kernels
from robagg._core.sketch import LEAST, ROUNDING, TINY, AlarmError, Gathered, Sketch, drop_origins, extend, gather, leave
from robagg.kernels.types import Rows


class Passes:
    """The passes over one stack, behind the pre-aggregators so far.

    A pre-aggregator is a matrix whose rows sum to one, so the rows behind it are affine in the rows before it, their
    Gram matrix is `W G W^T`, and what a rule combines of them is a combination of the rows that were sent.
    """

    def __init__(
        self,
        leaves: Sequence[Rows],
        anchors: dict[str, Sequence[Tensor] | None],
        *,
        wide: bool = False,
        unit: float = 1.0,
        verdict: bool = False,
        asks: bool = False,
        guarded: bool = False,
        votes: Tensor | None = None,
        outnumbered: bool = False,
    ) -> None:
        self.leaves = leaves
        self.anchors = anchors
        """Points that rules start from or measure to, leaf by leaf; None is the origin."""
        self.sent = len(leaves[0])
        self.matrix: Tensor | None = None
        """(m+a, n+a) or, before any pre-aggregator, None for the identity."""
        self.n = self.sent
        """How many rows there are behind the pre-aggregators."""
        self.device = leaves[0][0].device
        self.shared = False
        """Whether a row that was sent goes into several behind the pre-aggregators, so that these may coincide."""
        self.anchored = False
        """Whether anchors go into the rows behind the pre-aggregators."""
        self._alarm: Tensor | None = None
        self.wide = wide
        self.unit = unit
        """What a length of 1 is in these leaves."""
        self.verdict = verdict
        """Whether to compute each row's weight."""
        self.asks = asks
        """Whether the host may be asked between passes: on a device that takes longer than to go on."""
        self.guarded = guarded
        """Whether somebody else's class sees the sketches: none that is not finite may reach it."""
        self.votes = votes
        """(n,) int64: row i counts as so many; None: one each."""
        self._sent_votes = votes
        self.outnumbered = outnumbered
        """Whether half of the rows may be Byzantine: then only a median by votes is a centre for distances."""
        self._raw: tuple[list[Tensor], Sketch] | None = None

    deviation: float | None = None
    """The standard deviation of squared distances, as a part of them, where rows were projected."""
    columns: float = 0
    """How many columns of our own the last sketch was of."""

    @property
    def total(self) -> int:
        """All votes; no pre-aggregator changes their number."""
        return self.n if self.votes is None else int(self.votes.sum())

    @classmethod
    def of(cls, sketch: Sketch, *, verdict: bool = False) -> Passes:
        """Passes over rows of which only the inner products are known: what they combine has no coordinates."""
        row = sketch.gram.new_empty(0)
        passes = cls([[row] * sketch.n], dict.fromkeys(sketch.anchors), verdict=verdict)
        passes._raw = ([row], sketch)
        return passes

    @property
    def alarm(self) -> Tensor:
        """Whether a pass met numbers it cannot compute with (): NaN, Inf, or squares beyond the range."""
        return torch.zeros((), dtype=torch.bool, device=self.device) if self._alarm is None else self._alarm

    def raise_alarm(self, alarm: Tensor) -> None:
        """Set the alarm where () is true."""
        self._alarm = alarm if self._alarm is None else self._alarm | alarm

    def agree(self, alarm: Tensor) -> Tensor:
        """Whether it is set for any of the columns ()."""
        return alarm

    def push(self, matrix: Tensor, *, shares_rows: bool = False, anchored: bool = False) -> None:
        """Put a pre-aggregator (m, n + a) in front of what follows.

        `shares_rows`: one row goes into several; `anchored`: rows are mixed with anchors too.
        """
        self.shared |= shares_rows
        self.anchored |= anchored
        whole = matrix.to(torch.float64)
        if a := len(self.anchors):
            bottom = torch.eye(a, dtype=torch.float64, device=self.device)
            whole = torch.cat([whole, torch.nn.functional.pad(bottom, (matrix.shape[1] - a, 0))])
        self.matrix = whole if self.matrix is None else whole @ self.matrix
        self.n = len(matrix)

    def add_anchor(self, name: str, point: Sequence[Tensor]) -> None:
        """Measure to one more point too."""
        self.anchors, self._raw = {**self.anchors, name: point}, None
        self.matrix = None if self.matrix is None else extend(self.matrix)

    def distances(self, f: int, *, scaled: bool = False) -> Sketch:
        """The sketch for a rule that needs distances only: its centre is not the median of the rows behind a mixer."""
        sketch = self._sketch_sent()[1]
        sketch = replace(sketch, scaled=self._scale_sent()) if scaled else sketch
        if self.matrix is None:
            return self._for(sketch, sketch.gram, f)
        # A row that was drawn to an anchor far away is near the others by what is left of two large numbers: about the
        # mean of the rows, only the shares are subtracted.
        about = self.matrix - self.matrix[: self.n].mean(dim=0) if self.anchored else self.matrix
        if sketch.scaled is not None:
            sketch = replace(sketch, scaled=self._mix_gram(about, sketch.scaled))
        return self._for(sketch, self._mix_gram(about, sketch.gram), f)

    def _mix_gram(self, matrix: Tensor, gram: Tensor) -> Tensor:
        return kernels.mix_gram(matrix, gram)

    def sketch(self, f: int, *, floor: bool = False) -> tuple[list[Tensor], Sketch]:
        """The median of the rows, leaf by leaf, and their sketch about it.

        With `floor` the spread of rows that may coincide is no less than what mixing leaves of the rows that were sent.
        """
        if self.matrix is None:
            plain = self.votes is None or self.outnumbered
            medians, sketch = self._sketch_sent() if plain else self._sketch(None, f, self.votes)
            return medians, self._for(sketch, sketch.gram, f)
        mix, least = self.matrix[: self.n, : self.sent], None
        if floor and self.shared:
            least = leave(mix, self._sketch_sent()[1].gram.diagonal()[: self.sent], self._sent_votes)
        medians, sketch = self._sketch(mix, f, self.votes)
        sketch = self._for(sketch, sketch.gram, f)
        return medians, sketch if least is None else replace(sketch, spread=torch.maximum(sketch.spread, least))

    def bare(self, f: int) -> Sketch:
        """A sketch that knows n and f alone, for pre-aggregators that ask for no distances."""
        size = self.n + len(self.anchors)
        gram = torch.zeros(size, size, dtype=torch.float64, device=self.device)
        return self._for(Sketch(gram, gram.new_zeros(()), self.n, f, tuple(self.anchors), unit=self.unit), gram, f)

    def trim(self, lo: int, hi: int) -> list[Tensor]:
        """Per coordinate the mean of the sorted values lo..hi-1, leaf by leaf."""
        mix = None if self.matrix is None else self.matrix[: self.n, : self.sent].contiguous()
        values = []
        for rows in self.leaves:
            value, alarm = kernels.trim(rows, lo, hi, mix=mix, votes=self.votes, compute=self.compute(rows))
            self.raise_alarm(alarm)
            if mix is not None:  # the rows may be finite and a rounded mean of the largest numbers not
                self.raise_alarm(~torch.isfinite(value.sum()))
            values.append(value)
        return values

    def shares(self, lo: int, hi: int) -> Tensor:
        """Each sent row's share (n,) of the coordinates whose sorted values lo..hi-1 are averaged."""
        counts = self._count(lo, hi)
        part = (counts / counts.sum()).nan_to_num(nan=1 / self.n)
        return part if self.matrix is None else part @ self.matrix[: self.n, : self.sent]

    def _count(self, lo: int, hi: int) -> Tensor:
        """How many of its values (n,) each row behind the pre-aggregators has within the sorted ones lo..hi-1."""
        mix = None if self.matrix is None else self.matrix[: self.n, : self.sent].contiguous()
        counts = torch.zeros(self.n, dtype=torch.float64, device=self.device)
        for rows in self.leaves:
            counts += kernels.shares(rows, lo, hi, mix=mix, votes=self.votes, compute=self.compute(rows))
        return counts

    def combine(self, coefficients: Tensor, medians: Sequence[Tensor] | None = None) -> list[Tensor]:
        """The point with coefficients (n+a,) on rows and anchors, the rest on the median, leaf by leaf.

        It may lie where the medians lay: they are used up.
        """
        sent = drop_origins(self.through(coefficients), [*self.anchors.values()], medians is not None)
        values = []
        for leaf, rows in enumerate(self.leaves):
            beside = [point[leaf] for point in self.anchors.values() if point is not None]
            spare = None if medians is None else medians[leaf]
            beside += [] if spare is None else [spare]
            value, self._alarm = kernels.combine(
                rows, sent, beside=beside, compute=self.compute(rows), spare=spare, alarm=self._alarm
            )
            values.append(value)
        return values

    def through(self, coefficients: Tensor) -> Tensor:
        """Coefficients (n+a,) on the rows behind the pre-aggregators as coefficients on the rows that were sent."""
        return coefficients if self.matrix is None else coefficients @ self.matrix

    def compute(self, rows: Rows) -> torch.dtype:
        return torch.float64 if self.wide or rows[0].dtype == torch.float64 else torch.float32

    def _for(self, sketch: Sketch, gram: Tensor, f: int) -> Sketch:
        return replace(sketch, gram=gram, n=self.n, f=f, votes=self.votes, total=self.total)

    def _sketch_sent(self) -> tuple[list[Tensor], Sketch]:
        if self._raw is None:
            self._raw = self._sketch(None, 0, self._sent_votes if self.outnumbered else None)
        return self._raw

    def _scale_sent(self) -> Tensor:
        """The Gram matrix of the rows that were sent, with coordinates divided by `sqrt(MAD^2 + LEAST V / d)`."""
        votes = self._sent_votes
        plain = self._sketch_sent() if votes is None else self._sketch(None, 0, votes)
        found = self._gather(None, votes, (), LEAST * plain[1].spread / max(self.columns, 1))
        return self._look_at(found.gram, found.spread, None, self.sent, 0, found.coarse, tiny=0.0).gram

    def _sketch(self, mix: Tensor | None, f: int, votes: Tensor | None = None) -> tuple[list[Tensor], Sketch]:
        n = self.sent if mix is None else len(mix)
        spares: list[Tensor] = []
        if mix is not None and self._raw is not None:  # behind a mixer nobody asks for the median of what was sent
            spares, self._raw = self._raw[0], ([], self._raw[1])
        medians, spread, gram, square, coarse, self.columns = self._gather(mix, votes, spares)
        return medians, self._look_at(gram, spread, square, n, f, coarse)

    def _look_at(
        self, gram: Tensor, spread: Tensor, square: Tensor | None, n: int, f: int, coarse: torch.dtype,
        tiny: float | None = None,
    ) -> Sketch:  # fmt: skip
        """The sketch, if it can be computed with; else the alarm."""
        # V is no larger than the sum of the diagonal, so it needs no look of its own. Squares vanish if most rows' do:
        # one far row must not hide it. Of mixed rows all must: most may coincide, as NNM's do. Of one, the anchors.
        count = n if n > 1 else 1 + len(self.anchors)
        few = n if n == 1 else n // 2 if square is None else n - 1
        tiny, grain = TINY[coarse] if tiny is None else tiny, (8 * torch.finfo(coarse).eps) ** 2
        self._alarm, spread, blur = kernels.examine(
            gram, spread, n=count, few=few, tiny=tiny, square=square, grain=grain, alarm=self._alarm
        )
        if self.asks and not self.wide and bool(self._alarm):
            raise AlarmError
        if self.guarded and not self.asks:  # the round is done again: any sound sketch will do
            gram = torch.where(self._alarm, torch.eye(len(gram), dtype=torch.float64, device=self.device), gram)
            spread = torch.where(self._alarm, 1.0, spread)
        return Sketch(gram, spread, n, f, tuple(self.anchors), ROUNDING[coarse], blur, self.unit)

    def _gather(
        self, mix: Tensor | None, votes: Tensor | None, spares: Sequence[Tensor], floor: Tensor | None = None
    ) -> Gathered:
        return gather(self.leaves, [*self.anchors.values()], self.compute, mix, votes, spares, floor)
