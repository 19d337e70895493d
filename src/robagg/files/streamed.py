"""Rows that are never in memory whole: the engine's stack and its passes, made a chunk at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from robagg import kernels
from robagg._core.leaf import FLOATS
from robagg._core.passes import Passes
from robagg._core.sketch import AlarmError, Gathered, gather
from robagg._core.stack import FAR, LARGE, SMALL, Stack
from robagg._core.verdict import measure
from robagg.files.chunks import Chunk, Loader
from robagg.files.header import FileFaultError

Write = Callable[[str, int, Tensor], None]
"""Takes a tensor's name, where in it numbers begin, and the numbers (k,) of its dtype."""
NOTHING = 2.0**-52
"""What rounding leaves of 1: a median with so little weight need not be worked out."""


class Medians(list[Tensor]):
    """How the medians of a pass can be worked out again, chunk by chunk, since nobody has kept them."""

    def __init__(self, mix: Tensor | None, votes: Tensor | None) -> None:
        super().__init__()
        self.mix, self.votes = mix, votes

    def work_out(self, rows: list[Tensor], compute: torch.dtype) -> Tensor:
        count = len(rows) if self.mix is None else len(self.mix)
        total = count if self.votes is None else int(self.votes.sum())
        mix = None if self.mix is None else self.mix.contiguous()
        return kernels.trim(rows, (total - 1) // 2, total // 2 + 1, mix=mix, votes=self.votes, compute=compute)[0]


@dataclass
class Stream:
    """Where rows come from, chunk by chunk, and where their value goes."""

    loader: Loader
    plan: list[Chunk]
    write: Write
    based: bool
    """Whether the last source is the point that the rows are differences to."""
    distances: Tensor | None = None
    """(n,) how far the rows that were used are from the value that was written last."""
    floats: list[Chunk] = field(init=False)
    integers: list[Chunk] = field(init=False)

    def __post_init__(self) -> None:
        self.floats = [chunk for chunk in self.plan if chunk.dtype in FLOATS]
        self.integers = [chunk for chunk in self.plan if chunk.dtype not in FLOATS]

    @property
    def base(self) -> list[int]:
        return [len(self.loader.sources) - 1] if self.based else []

    def check_base(self) -> None:
        for row in self.base:
            if row in self.loader.failed:
                raise FileFaultError(f"the base {self.loader.failed[row]}")

    def write_lower_medians(self, kept: Sequence[int]) -> None:
        """The integer tensors' values: each coordinate's lower median."""
        with closing(self.loader.read(self.integers, kept)) as chunks:
            for chunk, rows in chunks:
                for row in set(kept) & self.loader.failed.keys():
                    raise FileFaultError(f"file {row} {self.loader.failed[row]}")
                self.put(chunk, torch.stack(rows).sort(dim=0).values[(len(rows) - 1) // 2])

    def put(self, chunk: Chunk, value: Tensor) -> None:
        """Hand on the value of a chunk; what rounding took over the edge of the dtype is put back on it."""
        if value.dtype != chunk.dtype:
            limit = torch.finfo(chunk.dtype).max
            value = value.clamp(-limit, limit).to(chunk.dtype)
        done = 0
        for name, start, count in chunk.parts:
            self.write(name, start, value[done : done + count])
            done += count


@dataclass(frozen=True)
class StreamedStack(Stack):
    """Rows of a stream; `leaves` and `counters` are empty, since none is in memory."""

    stream: Stream = field(kw_only=True)
    scales: tuple[float, ...] = ()
    """What each of the rows that were given is multiplied by; empty: nothing."""

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    def open_passes(self, anchors: dict[str, Sequence[Tensor] | None], **options: Any) -> Passes:
        return StreamedPasses(self, anchors, **options)

    def chunks(self, *, base: bool = False) -> Generator[tuple[Chunk, list[Tensor], list[Tensor]]]:
        """The vectors of the rows that are left, chunk by chunk, and that of the base, where it is asked for."""
        stream = self.stream
        rows = [*self.kept, *(stream.base if base else [])]
        with closing(stream.loader.read(stream.floats, rows)) as chunks:
            for chunk, vectors in chunks:
                stream.check_base()
                if self.scales:
                    vectors = [vector.double() * self.scales[row] for row, vector in zip(rows, vectors, strict=True)]
                yield chunk, vectors[: len(self.kept)], vectors[len(self.kept) :]

    def broken_rows(self) -> dict[int, str]:
        """The rows that hold NaN or Inf, or could not be read to their end."""
        found: dict[int, str] = {}
        with closing(self.chunks(base=True)) as chunks:
            for _, rows, base in chunks:
                if not all(bool(torch.isfinite(point).all()) for point in base):
                    raise ValueError("the base must be finite, got NaN or Inf in it")
                squares = kernels.measure(rows, None).tolist()
                for row, vector, square in zip(self.kept, rows, squares, strict=True):
                    if row not in found and not square < math.inf and not bool(torch.isfinite(vector).all()):
                        found[row] = "not finite"
        return found | {row: self.stream.loader.failed[row] for row in self.kept if row in self.stream.loader.failed}

    def tamed(self) -> tuple[Stack, float]:
        """As `Stack.tamed`, whose copies are made again in each pass."""
        if all(chunk.dtype != torch.float64 for chunk in self.stream.floats):
            return self, 1.0
        largest = [0.0] * len(self.kept)
        with closing(self.chunks()) as chunks:
            for _, rows, _ in chunks:
                largest = [max(top, float(row.abs().max())) for top, row in zip(largest, rows, strict=True)]
        middle = sorted(largest)[(len(largest) - 1) // 2] or max(largest)
        exponent = 0 if SMALL < middle < LARGE or middle == 0 else max(-1000, min(1000, -math.frexp(middle)[1]))
        if exponent == 0 and max(largest) < LARGE:
            return self, 1.0
        scales = [2.0**exponent] * (self.n + 1)  # the last is the base's
        for row, top in zip(self.kept, largest, strict=True):
            scales[row] = min(2.0**exponent, FAR / top) if top > 0 else 2.0**exponent
        return replace(self, scales=tuple(scales)), 2.0**-exponent


class StreamedPasses(Passes):
    """The passes over a stream: each chunk is passed over as a stack of its own, and the sums are theirs together.

    What a pass makes is not returned but written, and how far the rows are from it is measured while they are at hand.
    """

    def __init__(self, stack: StreamedStack, anchors: dict[str, Sequence[Tensor] | None], **options: Any) -> None:
        super().__init__([[torch.empty(0)] * len(stack.kept)], dict.fromkeys(anchors), **options)
        self.stack = stack
        self.counts = torch.zeros(0, dtype=torch.float64)

    def trim(self, lo: int, hi: int) -> list[Tensor]:
        counts = torch.zeros(self.n, dtype=torch.float64)

        def make(part: Passes) -> Tensor:
            value = part.trim(lo, hi)[0]
            if self.verdict:  # another pass would read everything again
                counts.add_(part._count(lo, hi))
            return value

        self._write(make)
        self.counts = counts
        return []

    def _count(self, lo: int, hi: int) -> Tensor:
        return self.counts

    def combine(self, coefficients: Tensor, medians: Sequence[Tensor] | None = None) -> list[Tensor]:
        again = medians if isinstance(medians, Medians) and abs(1 - float(coefficients.sum())) > NOTHING else None

        def make(part: Passes) -> Tensor:
            rows = part.leaves[0]
            centre = None if again is None else [again.work_out(list(rows), part.compute(rows))]
            return part.combine(coefficients, centre)[0]

        self._write(make)
        return []

    def _gather(
        self, mix: Tensor | None, votes: Tensor | None, spares: Sequence[Tensor], floor: Tensor | None = None
    ) -> Gathered:
        total: Gathered | None = None
        with closing(self.stack.chunks(base=bool(self.anchors))) as chunks:
            for _, rows, base in chunks:
                points = [base or None for _ in self.anchors]
                # The last chunk's median makes room for this one's, and sums are added up at once: small numbers that
                # are kept between large ones that come and go would keep memory in pieces that nothing fits into.
                spares = total.medians if total else ()
                got = gather([rows], points, self.compute, mix, votes, spares, floor)
                self._end_early(bool(torch.isfinite(got.gram.diagonal()).all()))
                total = add(total, got)
        assert total is not None
        return total._replace(medians=Medians(mix, votes))

    def _write(self, make: Callable[[Passes], Tensor]) -> None:
        lengths = torch.zeros(self.sent, dtype=torch.float64)
        with closing(self.stack.chunks(base=bool(self.anchors))) as chunks:
            for chunk, rows, base in chunks:
                part = Passes([rows], dict.fromkeys(self.anchors, base or None), wide=self.wide, votes=self.votes)
                part.matrix, part.n = self.matrix, self.n
                value = make(part)
                self.raise_alarm(part.alarm)
                self._end_early(not bool(part.alarm))
                at_hand = replace(self.stack, leaves=(rows,), kept=tuple(range(self.sent)))
                lengths = torch.hypot(lengths, measure(at_hand, [value]))
                if self.stack.scales:
                    limit = torch.finfo(torch.float64).max
                    value = (value.double() / self.unit).clamp(-limit, limit)
                self.stack.stream.put(chunk, value)
        if self.stack.scales:
            scales = torch.tensor([self.stack.scales[row] for row in self.stack.kept], dtype=torch.float64)
            lengths = (lengths / scales).clamp(max=torch.finfo(torch.float64).max)
        self.stack.stream.distances = lengths

    def _end_early(self, sound: bool) -> None:
        """What is not finite in one chunk, or could not be read, ends the attempt: the rest need not be read."""
        failed = any(row in self.stack.stream.loader.failed for row in self.stack.kept)
        if failed or (not sound and not self.wide):
            raise AlarmError


def add(total: Gathered | None, got: Gathered) -> Gathered:
    """What chunks come to together; the medians are those of the last one."""
    if total is None:
        return got
    total.spread.add_(got.spread)
    total.gram.add_(got.gram)
    if total.square is not None and got.square is not None:
        total.square.add_(got.square)
    coarse = min(total.coarse, got.coarse, key=lambda dtype: dtype.itemsize)
    return total._replace(medians=got.medians, coarse=coarse, columns=total.columns + got.columns)
