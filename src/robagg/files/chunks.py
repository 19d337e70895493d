"""Which numbers are in memory at a time: a plan of chunks, and buffers that fill while the last chunk is worked on."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate

import torch
from torch import Tensor

from robagg._core.leaf import FLOATS
from robagg.files.source import Entry, Source

LARGEST = 8 << 20
"""Bytes of one client in a chunk beyond which reading gets no faster."""
SMALLEST = 4096
"""Bytes of one client in a chunk below which it would be reading alone."""
PART = 4
"""The part of the memory that one of two buffers may take: what is worked out needs as much again."""
WIDE = 8
"""A chunk of whole numbers has so many times fewer of them: to sort them takes several copies."""

Progress = Callable[[int, int, int], None]
"""Called with the number of the pass, the chunks of it that are done, and those there are."""


@dataclass(frozen=True)
class Chunk:
    """Numbers of one dtype that are in memory together: (name, start, count) of each tensor's part."""

    dtype: torch.dtype
    parts: tuple[tuple[str, int, int], ...]

    @property
    def count(self) -> int:
        return sum(count for _, _, count in self.parts)


def plan_chunks(entries: Mapping[str, Entry], most: int) -> list[Chunk]:
    """Part tensors into chunks of at most so many bytes, dtype by dtype.

    >>> [chunk.parts for chunk in plan_chunks({"w": Entry(torch.float32, (3, 2)), "b": Entry(torch.float32, (1,))}, 16)]
    [(('w', 0, 4),), (('w', 4, 2), ('b', 0, 1))]
    """
    chunks = []
    for dtype in dict.fromkeys(entry.dtype for entry in entries.values()):
        room = max(1, most // dtype.itemsize // (1 if dtype in FLOATS else WIDE))
        parts: list[tuple[str, int, int]] = []
        left = room
        for name, entry in entries.items():
            start, count = 0, entry.count if entry.dtype == dtype else 0
            while start < count:
                took = min(left, count - start)
                parts.append((name, start, took))
                start, left = start + took, left - took
                if not left:
                    chunks.append(Chunk(dtype, tuple(parts)))
                    parts, left = [], room
        if parts:
            chunks.append(Chunk(dtype, tuple(parts)))
    return chunks


def size_chunks(memory: int, n: int) -> int:
    """How many bytes of each of n clients a chunk may hold."""
    most = min(LARGEST, memory // PART // n) // 64 * 64
    if most < SMALLEST:
        least = SMALLEST * PART * n
        raise ValueError(f"memory must be at least {least} bytes for {n} files, got {memory}")
    return most


@dataclass
class Loader:
    """Reads chunks of many sources, the next while the last one is worked on."""

    sources: Sequence[Source | None]
    """None: one that is never read."""
    most: int
    """Bytes of one source in a chunk."""
    progress: Progress | None = None
    failed: dict[int, str] = field(default_factory=dict)
    """Why sources that were readable once could not be read on."""
    passes: int = 0
    _buffers: list[Tensor] = field(default_factory=list)

    def read(self, chunks: Sequence[Chunk], rows: Sequence[int]) -> Generator[tuple[Chunk, list[Tensor]]]:
        """Chunk by chunk the vectors (d,) of some sources; they last until the next one is asked for.

        Of a source that fails the numbers are zero, and `failed` says why.
        """
        self.passes += 1
        if not self._buffers:
            self._buffers = [torch.empty(len(self.sources), self.most, dtype=torch.uint8) for _ in range(2)]
        with ThreadPoolExecutor(max_workers=1) as pool:
            ahead = pool.submit(self._fill, 0, chunks[0], rows) if chunks else None
            for k, chunk in enumerate(chunks):
                assert ahead is not None
                vectors = ahead.result()
                if k + 1 < len(chunks):
                    ahead = pool.submit(self._fill, (k + 1) % 2, chunks[k + 1], rows)
                yield chunk, vectors
                if self.progress is not None:
                    self.progress(self.passes, k + 1, len(chunks))

    def _fill(self, which: int, chunk: Chunk, rows: Sequence[int]) -> list[Tensor]:
        size = chunk.count * chunk.dtype.itemsize
        ends = [*accumulate((count for _, _, count in chunk.parts), initial=0)]
        vectors = []
        for row in rows:
            vector = self._buffers[which][row, :size].view(chunk.dtype)
            source = self.sources[row]
            assert source is not None
            try:
                for (name, start, count), first in zip(chunk.parts, ends, strict=False):
                    source.read(name, start, vector[first : first + count])
            except (ValueError, OSError) as error:
                self.failed.setdefault(row, f"could not be read on: {error}")
                vector.zero_()
            vectors.append(vector)
        return vectors
