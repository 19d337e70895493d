"""Lines of Triton source for one tile of columns: its rows are loaded or mixed, sorted, and measured about the middle.

Sorting n values of a column needs them in n registers under n names, and Triton has no arrays of registers: so the
network is spelled out, line by line, for its n. A row of a tile is one block of columns; comparators are min and max.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

CHUNK = 64
"""Rows that are mixed in one product; more of them run in a loop."""


def pointers(n: int, loose: bool) -> list[str]:
    return [f"r{i}" for i in range(n)] if loose else ["x", "stride"]


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


def joined(rows: list[str]) -> str:
    """One block of all rows: a join adds the last, fastest axis, so the outermost one tells even rows from odd."""
    return rows[0] if len(rows) == 1 else f"tl.join({joined(rows[0::2])}, {joined(rows[1::2])})"


def pad(n: int, least: int = 32) -> int:
    """Rows of a block that tensor cores take."""
    return max(least, 1 << (n - 1).bit_length())


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
