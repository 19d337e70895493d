"""Triton source for the passes, written out for each number of rows; `cuda_tile` writes what is done with a tile."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from robagg.kernels.cuda_tile import high, joined, loads, mad, middle, mixes, ordered, pad, pointers, prologue


@cache
def build(kind: Callable[..., Iterator[str]], *shape: Any) -> Any:
    """The compiled-on-first-call kernel whose source `kind(*shape)` writes."""
    import triton
    import triton.language as tl

    source = "\n".join(kind(*shape)) + "\n"
    # Triton reads a kernel's source through `inspect`, which asks `linecache`.
    name = f"<robagg {kind.__name__}{shape}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    scope: dict[str, Any] = {"tl": tl, "__name__": __name__}
    exec(compile(source, name, "exec"), scope)
    # One kernel for every length, stride and alignment: a new length must not mean a new compilation.
    names = [word.strip() for word in source[source.index("(") + 1 : source.index(")")].split(",")]
    plain = [word for word in names if "constexpr" not in word]
    return triton.jit(scope["kernel"], do_not_specialize=plain)


def sketch(m: int, n: int, loose: bool, mix: bool, anchors: str) -> Iterator[str]:
    """Median, MAD and Gram matrix of m rows (mixed from n, or the n rows) and anchors: "o" the origin, "v" a vector.

    Mixed rows come with the squared length of their median.
    """
    size = m + len(anchors)
    padded = pad(size)
    named = [f"a{k}" for k, kind in enumerate(anchors) if kind == "v"]
    yield f"def kernel({', '.join([*pointers(n, loose), *(['w'] if mix else []), *named])}, median, share, d, tiles,"
    yield "           BLOCK: tl.constexpr):"
    yield from prologue(loose, m, n, mix)
    yield "    spread = tl.zeros((BLOCK,), tl.float64)"
    if mix:
        yield "    square = tl.zeros((BLOCK,), tl.float64)"
    yield f"    gram = tl.zeros(({64 if padded == 32 else padded}, {padded}), tl.float64)"
    yield f"    cross = tl.zeros(({padded}, {padded}), tl.float32)"
    yield "    for t in range(tl.program_id(0), tiles, tl.num_programs(0)):"
    for line in tile_of(m, n, loose, mix, anchors):
        yield "        " + line
    if padded == 32:
        yield "    gram, cross = tl.split(tl.permute(tl.reshape(gram, (32, 2, 32)), (0, 2, 1)))"
    yield "    gram += (cross + tl.trans(cross)).to(tl.float64)"
    yield f"    at = tl.arange(0, {padded})"
    yield f"    share += tl.program_id(0) * {size * size + 1 + mix}"
    yield f"    inside = (at[:, None] < {size}) & (at[None, :] < {size})"
    yield f"    tl.store(share + at[:, None] * {size} + at[None, :], gram, mask=inside)"
    yield f"    tl.store(share + {size * size}, tl.sum(spread, axis=0))"
    if mix:
        yield f"    tl.store(share + {size * size + 1}, tl.sum(square, axis=0))"


def tile_of(m: int, n: int, loose: bool, mix: bool, anchors: str) -> Iterator[str]:
    """A sketch's work on one tile."""
    size = m + len(anchors)
    padded = pad(size)
    yield "cols = t * BLOCK + lane"
    yield "keep = cols < d"
    yield from mixes(m, n, loose) if mix else loads(n, loose)
    yield from ordered(m)
    yield f"centre = {middle(m)}"
    yield "tl.store(median + cols, centre, mask=keep)"
    yield from mad(m)
    yield "wide = mad.to(tl.float64)"
    yield "spread += wide * wide"
    if mix:
        yield "wide = centre.to(tl.float64)"
        yield "square += wide * wide"
    points = [
        f"tl.load(a{k} + cols, mask=keep, other=0.0).to(tl.float32) - centre" if kind == "v" else "0.0 - centre"
        for k, kind in enumerate(anchors)
    ]
    if mix and not loose:
        # From a load the compiler learns how rows lie over the threads, and joins them below without moving them; from
        # a product it does not. What is not finite in this row has spoilt the centre already.
        yield "centre += tl.load(x + cols, mask=keep, other=0.0).to(tl.float32) * 0.0"
    for k, point in enumerate([f"x{i} - centre" for i in range(m)] + points):
        yield f"y{k} = {point}"
    yield "none = tl.zeros((BLOCK,), tl.float32)"
    yield f"y = tl.reshape({joined([f'y{i}' if i < size else 'none' for i in range(padded)])}, (BLOCK, {padded}))"
    # Tensor cores keep 10 bits of a float32. With y = h + l, h of 10 bits, y y' = h h' + h l' + l h' up to 2^-22.
    yield high("h", "y")
    if padded == 32:
        # Both products at once: 64 rows are what Hopper's matrix unit takes.
        yield "both = tl.reshape(tl.join(h, y - h), (BLOCK, 64))"
        yield "gram += tl.dot(tl.trans(both), h, input_precision='tf32').to(tl.float64)"
    else:
        yield "gram += tl.dot(tl.trans(h), h, input_precision='tf32').to(tl.float64)"
        yield "cross = tl.dot(tl.trans(h), y - h, cross, input_precision='tf32')"


def trim(m: int, n: int, loose: bool, mix: bool, lo: int, hi: int) -> Iterator[str]:
    """The mean of the sorted values lo..hi-1 of m rows (mixed from n, or the n rows)."""
    yield f"def kernel({', '.join([*pointers(n, loose), *(['w'] if mix else [])])}, value, alarm, d, tiles,"
    yield "           BLOCK: tl.constexpr):"
    yield from prologue(loose, m, n, mix)
    yield "    bad = tl.zeros((BLOCK,), tl.float32)"
    yield "    for t in range(tl.program_id(0), tiles, tl.num_programs(0)):"
    yield "        cols = t * BLOCK + lane"
    yield "        keep = cols < d"
    plain = [*loads(n, loose), *(f"bad += x{k} * 0.0" for k in range(n))]
    for line in [*(mixes(m, n, loose, alarm=True) if mix else plain), *ordered(m)]:
        yield "        " + line
    # Each term divided, so that the sum does not overflow.
    terms = [f"s{i}" if hi - lo == 1 else f"s{i} * {1 / (hi - lo)!r}" for i in range(lo, hi)]
    yield f"        total = {terms[0]}"
    for term in terms[1:]:
        yield f"        total += {term}"
    yield "        tl.store(value + cols, total, mask=keep)"
    # Every program that stores, stores the same: no order, no atomics.
    yield "    broken = tl.max((bad != 0.0).to(tl.int32), axis=0)"
    yield "    tl.store(alarm, broken.to(tl.uint8), mask=broken > 0)"


def combine(loose: int, chunk: int, rest: bool) -> Iterator[str]:
    """The weighted sum of n rows at one stride, a chunk of them in flight at a time, and of `loose` vectors.

    With `rest` the last vector's coefficient is what the others leave of 1.
    """
    named = [f"r{k}" for k in range(loose)]
    yield f"def kernel({', '.join(['x', 'stride', 'n', *named])}, c, value, alarm, d, BLOCK: tl.constexpr):"
    yield "    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)"
    yield "    keep = cols < d"
    yield "    total = tl.zeros((BLOCK,), tl.float32)"
    yield "    left = tl.full((), 1.0, tl.float64)"
    if chunk:
        yield "    p = x + cols"
        yield f"    for i in range(0, n, {chunk}):"
        for k in range(chunk):
            yield f"        c{k} = tl.load(c + i + {k}, mask=i + {k} < n, other=0.0)"
            yield f"        left -= c{k}"
            yield f"        c{k} = c{k}.to(tl.float32)"
            # A row nobody believes is not read.
            yield f"        v{k} = tl.load(p, mask=cols < tl.where(c{k} != 0.0, d, 0), other=0.0).to(tl.float32)"
            yield "        p += stride"
        for k in range(chunk):
            yield f"        total += c{k} * v{k}"
    for k in range(loose):
        yield f"    c{k} = left" if rest and k == loose - 1 else f"    c{k} = tl.load(c + n + {k})"
        yield f"    left -= c{k}"
        yield f"    c{k} = c{k}.to(tl.float32)"
        yield f"    v{k} = tl.load(r{k} + cols, mask=cols < tl.where(c{k} != 0.0, d, 0), other=0.0).to(tl.float32)"
    for k in range(loose):
        yield f"    total += c{k} * v{k}"
    yield "    tl.store(value + cols, total, mask=keep)"
    yield "    broken = tl.max((total * 0.0 != 0.0).to(tl.int32), axis=0)"
    yield "    tl.store(alarm, broken.to(tl.uint8), mask=broken > 0)"
