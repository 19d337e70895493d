"""Triton source for the passes, written out for each number of rows.

Sorting n values of a column needs them in n registers under n names, and Triton has no arrays of registers: so the
network is spelled out, line by line, for its n. A row of a tile is one block of columns; comparators are min and max.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

CHUNK = 64
"""Rows that are mixed in one product; more of them run in a loop."""


@cache
def network(n: int) -> tuple[tuple[int, int], ...]:
    """Batcher's odd-even merge sort for n values: pairs (i, j), i < j, to put in order.

    >>> network(3)
    ((0, 1), (0, 2), (1, 2))
    """
    pairs = []
    p = 1
    while p < n:
        k = p
        while k:
            for j in range(k % p, n - k, 2 * k):
                # Comparators with a partner beyond n would meet +inf and do nothing.
                pairs += [
                    (i + j, i + j + k) for i in range(min(k, n - j - k)) if (i + j) // (2 * p) == (i + j + k) // (2 * p)
                ]
            k //= 2
        p *= 2
    return tuple(pairs)


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


def pointers(n: int, loose: bool) -> list[str]:
    return [f"r{i}" for i in range(n)] if loose else ["x", "stride"]


def loads(n: int, loose: bool, v: str = "x") -> Iterator[str]:
    """x0..x{n-1}: the rows of the tile."""
    if not loose:
        yield "p = x + cols[:, None] + four[None, :] * step"
    for k in range(0, n, 1 if loose else 4):
        if loose:
            yield f"{v}{k} = tl.load(r{k} + cols, mask=keep, other=0.0).to(tl.float32)"
            continue
        # Four rows a load: the compiler's work grows with the square of the number of loads.
        yield f"quad = tl.load(p, mask=keep[:, None] & (four[None, :] < {n - k}), other=0.0).to(tl.float32)"
        yield "p += 4 * step"
        yield "even, odd = tl.split(tl.reshape(quad, (BLOCK, 2, 2)))"
        yield f"{v}{k}, {v}{k + 2} = tl.split(even)"
        yield f"{v}{k + 1}, {v}{k + 3} = tl.split(odd)"


def mixes(m: int, n: int, loose: bool, *, alarm: bool = False) -> Iterator[str]:
    """x0..x{m-1}: mixtures of the rows of the tile; `bad` is not 0 where a row that was read is not finite."""
    chunk = min(CHUNK, pad(n, 16))
    looped = n > chunk
    yield f"mixed = tl.zeros((BLOCK, {pad(m)}), tl.float32)"
    if looped:
        yield f"for j in range(0, {n}, {chunk}):"
    deep, row = ("    ", "(j + ks)") if looped else ("", "ks")
    if loose:
        yield from loads(n, loose, "v")
        names = [f"v{k}" if k < n else "none" for k in range(chunk)]
        yield "none = tl.zeros((BLOCK,), tl.float32)"
        yield f"tile = tl.reshape({joined(names)}, (BLOCK, {chunk}))"
    else:
        there = f"keep[:, None] & ({row}[None, :] < {n})"
        yield f"{deep}tile = tl.load(x + cols[:, None] + {row}[None, :] * step, mask={there}, other=0.0).to(tl.float32)"
    if looped:
        yield from ("    " + line for line in split_weights(m, n, "(j + ks)"))
    yield f"{deep}{high('high', 'tile')}"
    yield f"{deep}low = tile - high"
    # Three products of numbers with 10 bits each, which together are as good as one of float32.
    for ours, theirs in (("low", "weight"), ("high", "finer"), ("high", "weight")):
        yield f"{deep}mixed = tl.dot({ours}, {theirs}, mixed, input_precision='tf32')"
    if alarm:
        yield f"{deep}bad += tl.sum(tile * 0.0, axis=1)"
    # A product's columns lie spread over the threads by their bits 1 and 2. Split by these first, it is turned once so
    # that every thread has whole rows of it.
    bits = pad(m).bit_length() - 1
    order = [*range(bits - 1, 2, -1), 0, 2, 1]
    yield f"parts = tl.reshape(mixed, (BLOCK, {', '.join(['2'] * bits)}))"
    yield f"parts = tl.permute(parts, {(0, *(bits - bit for bit in order))})"
    yield from splits("parts", order, 0, m)


def split_weights(m: int, n: int, row: str) -> Iterator[str]:
    """The matrix that mixes the rows `row`, as numbers of 10 bits (`weight`) and what they leave (`finer`)."""
    inside = f"({row}[:, None] < {n}) & (ms[None, :] < {m})"
    yield f"whole = tl.load(w + {row}[:, None] + ms[None, :] * {n}, mask={inside}, other=0.0)"
    yield high("weight", "whole")
    yield "finer = whole - weight"


def high(name: str, of: str) -> str:
    """The nearest number of 10 bits: tensor cores keep no more of a float32."""
    return f"{name} = (({of}.to(tl.int32, bitcast=True) + 4096) & -8192).to(tl.float32, bitcast=True)"


def splits(block: str, bits: list[int], first: int, m: int) -> Iterator[str]:
    """x0..x{m-1} from a block whose last axes are bits of the column's number, from column `first` on."""
    if first >= m:
        return
    if not bits:
        yield f"x{first} = {block}"
        return
    yield f"{block}0, {block}1 = tl.split({block})"
    yield from splits(f"{block}0", bits[:-1], first, m)
    yield from splits(f"{block}1", bits[:-1], first + (1 << bits[-1]), m)


def prologue(loose: bool, m: int, n: int, mix: bool) -> Iterator[str]:
    """What every tile needs."""
    yield "    lane = tl.arange(0, BLOCK)"
    if not loose:
        yield "    four = tl.arange(0, 4)"
        yield "    step = tl.full((), stride, tl.int64)"
    if mix:
        yield f"    ms = tl.arange(0, {pad(m)})"
        yield f"    ks = tl.arange(0, {min(CHUNK, pad(n, 16))})"
        if n <= CHUNK:
            yield from ("    " + line for line in split_weights(m, n, "ks"))


def pad(n: int, least: int = 32) -> int:
    """Rows of a block that tensor cores take."""
    return max(least, 1 << (n - 1).bit_length())


def ordered(n: int) -> Iterator[str]:
    """s0 <= s1 <= ...: the values of x0.. in order."""
    for i in range(n):
        yield f"s{i} = x{i}"
    for i, j in network(n):
        yield f"low = tl.minimum(s{i}, s{j})"
        yield f"s{j} = tl.maximum(s{i}, s{j})"
        yield f"s{i} = low"


def middle(n: int) -> str:
    """The median; the midpoint of halves does not overflow."""
    return f"s{n // 2}" if n % 2 else f"s{n // 2 - 1} * 0.5 + s{n // 2} * 0.5"


def mad(n: int) -> Iterator[str]:
    """The median deviation from the centre, from opposite pairs of the sorted values; see `reference.mad`."""
    h = n // 2
    if h == 0:
        yield "mad = centre * 0.0"
    for i in range(h):
        yield f"left = centre - s{h - 1 - i}"
        yield f"right = s{n - 1 - i} - centre"
        lower, upper = "tl.minimum(left, right)", "tl.maximum(left, right)"
        yield f"lo = {lower if i == 0 else f'tl.maximum(lo, {lower})'}"
        if n % 2 == 0:
            yield f"hi = {upper if i == 0 else f'tl.minimum(hi, {upper})'}"
    if h:
        yield "mad = lo" if n % 2 else "mad = lo * 0.5 + hi * 0.5"


def joined(rows: list[str]) -> str:
    """One block of all rows: a join adds the last, fastest axis, so the outermost one tells even rows from odd."""
    return rows[0] if len(rows) == 1 else f"tl.join({joined(rows[0::2])}, {joined(rows[1::2])})"
