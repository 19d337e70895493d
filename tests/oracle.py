"""Every rule and pre-aggregator as plain float64 loops that read like the definitions: slow, direct, and never fast.

Rows are lists of floats. Nothing here is shared with the package: where the two agree, both are right or both are
wrong in the same way, and they were not written from each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate, combinations
from typing import Any

import numpy as np

Vector = list[float]
Rows = Sequence[Sequence[float]]


def distance(a: Sequence[float], b: Sequence[float]) -> float:
    return math.sqrt(math.fsum((p - q) ** 2 for p, q in zip(a, b, strict=True)))


def squared(a: Sequence[float], b: Sequence[float]) -> float:
    return math.fsum((p - q) ** 2 for p, q in zip(a, b, strict=True))


def median_of(values: Sequence[float]) -> float:
    s = sorted(values)
    n = len(s)
    if n % 2 == 1:
        return s[n // 2]
    return s[n // 2 - 1] / 2 + s[n // 2] / 2


def copies(rows: Sequence[Any], votes: Sequence[int]) -> list[Any]:
    """Each row as often as it has votes: what a rule with client weights is the plain rule on."""
    return [row for row, count in zip(rows, votes, strict=True) for _ in range(count)]


def heaviest(votes: Sequence[int], f: int, share: float = 0.0) -> int:
    """The votes of the f heaviest rows, or of a share where that is more; always less than half."""
    held = sum(sorted(votes, reverse=True)[:f])
    return max(held, min(math.ceil(share * sum(votes)), (sum(votes) - 1) // 2))


def tolerated(votes: Sequence[int], f: int | float | None, joins: int = 1) -> int:
    """How many rows f stands for, when a row stands for up to `joins` clients: they must hold less than half."""
    order = sorted(votes, reverse=True)

    def most(size: int) -> int:
        return max(k for k in range(len(votes) + 1) if 2 * sum(order[: k * size]) < sum(votes))

    if f is None:
        asked = most(1)
    elif isinstance(f, float):
        asked = min(min(k for k in range(len(votes) + 1) if sum(order[:k]) >= f * sum(votes) - 1e-9), most(1))
    else:
        asked = f
    return min(asked, most(joins))


def weighted_sum(weights: Sequence[float], rows: Rows) -> Vector:
    return [math.fsum(w * row[j] for w, row in zip(weights, rows, strict=True)) for j in range(len(rows[0]))]


def mean(rows: Rows) -> Vector:
    n = len(rows)
    return [math.fsum(row[j] for row in rows) / n for j in range(len(rows[0]))]


def cm(rows: Rows) -> Vector:
    return [median_of([row[j] for row in rows]) for j in range(len(rows[0]))]


def tm(rows: Rows, f: int) -> Vector:
    n = len(rows)
    value = []
    for j in range(len(rows[0])):
        s = sorted(row[j] for row in rows)
        value.append(math.fsum(s[f : n - f]) / (n - 2 * f))
    return value


def spread(rows: Rows) -> float:
    """V = sum_j MAD_j^2."""
    total = 0.0
    for j in range(len(rows[0])):
        column = [row[j] for row in rows]
        m = median_of(column)
        total += median_of([abs(x - m) for x in column]) ** 2
    return total


def krum_scores(rows: Rows, f: int) -> list[float]:
    n = len(rows)
    scores = []
    for i in range(n):
        nearest = sorted(squared(rows[i], rows[j]) for j in range(n))
        scores.append(math.fsum(nearest[: n - f]))
    return scores


def nearest_votes(rows: Rows, votes: Sequence[int], f: int, i: int) -> list[int]:
    """How many votes of each row are among the nearest to row i, all votes but f: its own, then the next row's."""
    left, taken = sum(votes) - f, [0] * len(rows)
    for j in sorted(range(len(rows)), key=lambda j: (j != i, squared(rows[i], rows[j]), j)):
        taken[j] = min(votes[j], left)
        left -= taken[j]
    return taken


def weighted_krum_scores(rows: Rows, votes: Sequence[int], f: int) -> list[float]:
    """The squared distances to the nearest votes; a row without votes is not there to be chosen."""
    scores = []
    for i in range(len(rows)):
        taken = nearest_votes(rows, votes, f, i)
        scores.append(math.fsum(k * squared(rows[i], rows[j]) for j, k in enumerate(taken)) if votes[i] else math.inf)
    return scores


def weighted_nnm(rows: Rows, votes: Sequence[int], f: int) -> list[Vector]:
    """Each row becomes the mean of the votes nearest to it; it keeps its own."""
    return [weighted_mean(rows, nearest_votes(rows, votes, f, i)) for i in range(len(rows))]


def weighted_mean(rows: Rows, votes: Sequence[int]) -> Vector:
    return weighted_sum([k / sum(votes) for k in votes], rows)


def weighted_bucketing(
    rows: Rows, votes: Sequence[int], order: Sequence[int], s: int = 2
) -> tuple[list[Vector], list[int]]:
    """The weighted means of the buckets, and their votes: the sums of their rows'."""
    means, sums = [], []
    for k in range(0, len(order), s):
        bucket = order[k : k + s]
        counts = [votes[i] for i in bucket]
        sums.append(sum(counts))
        means.append(weighted_mean([rows[i] for i in bucket], counts if sum(counts) else [1] * len(bucket)))
    return means, sums


def krum(rows: Rows, f: int) -> Vector:
    scores = krum_scores(rows, f)
    return list(rows[scores.index(min(scores))])


def multikrum(rows: Rows, f: int) -> Vector:
    n = len(rows)
    scores = krum_scores(rows, f)
    best = sorted(range(n), key=lambda i: (scores[i], i))[: n - f]
    return mean([rows[i] for i in best])


def scaled(rows: Rows, f: float, sent: Rows, votes: Sequence[float] | None = None) -> list[list[float]]:
    """Rows with their coordinates twice: plain, and in units of the spread of rows that were sent, both by variance."""
    m = cm(sent)
    squares = [median_of([abs(row[j] - m[j]) for row in sent]) ** 2 for j in range(len(m))]
    units = [u + 0.01 * math.fsum(squares) / len(m) for u in squares]
    other = [[x / math.sqrt(u) if u else 0.0 for x, u in zip(row, units, strict=True)] for row in rows]
    counts = [1.0] * len(rows) if votes is None else votes
    parts = []
    for part in (rows, other):
        away = [squared(row, cm(part)) for row in part]
        unit = max(pair_variance(part, counts, f), 1e-12 * max(away), 1e-300)
        parts.append([[x / math.sqrt(unit) for x in row] for row in part])
    return [[*a, *b] for a, b in zip(*parts, strict=True)]


def caf(
    rows: Rows,
    f: float,
    standout: float = 0.0,
    votes: Sequence[float] | None = None,
    seen: Rows | None = None,
) -> tuple[Vector, float]:
    """The value, and the smallest margin by which a direction, a row, the end or the least variance was decided.

    With `standout` it is SpectralFilter. With votes their sum is n, and f counts votes. With `seen` the weights are
    found on those rows.
    """
    seen = rows if seen is None else seen
    x, own = np.array(seen, dtype=float), np.array(rows, dtype=float)
    n = len(x)
    c, steps, gap, taken = np.ones(n) if votes is None else np.array(votes, dtype=float), [], math.inf, 0
    part = math.fsum((k / n) ** 2 for k in c)
    level = standout * pair_variance(seen, c.tolist(), f) * part / max(1 - part, 1e-9)
    lost = sum(held < 2 * f for held in accumulate(sorted(k for k in c if k)))
    most_steps = 10 + (2 * f if votes is None else lost + 1)
    while f and c.sum() > n - 2 * f and (not standout or taken < most_steps):
        mu = c @ x / c.sum()
        away = x - mu
        values, vectors = np.linalg.eigh(away.T @ (away * c[:, None]) / c.sum())
        value = list(c @ own / c.sum())
        if values[-1] <= 1e-20:
            return value, gap
        if len(values) > 1:
            gap = min(gap, 1 - values[-2] / values[-1])
        steps.append((float(values[-1]), value))
        if standout:
            gap = min(gap, relative_gap(float(values[-1]), level))
            if values[-1] <= level:
                break
        gentle, taken = min(0.5, level / values[-1]), taken + 1
        t = (away @ vectors[:, -1]) ** 2
        most = max(t[c > 0])
        left = np.where(c > 0, c * np.maximum(1 - (1 - gentle) * t / most, 0), 0)
        # A row that goes to nothing beside the one that goes first is at the mercy of rounding, and so is one that has
        # next to nothing left.
        gap = min([gap, abs(left.sum() - (n - 2 * f)), *(p for p in left if p > 0)])
        gap = min([gap, *(relative_gap(float(a), float(most)) for a in t[(c > 0) & (t < most)])])
        if sum(t[c > 0] == most) > 1:
            gap = 0.0
        c = left
    if not steps:
        return mean(rows) if votes is None else weighted_sum([k / n for k in votes], rows), gap
    steps.sort(key=lambda step: step[0])
    if len(steps) > 1:
        gap = min(gap, relative_gap(steps[0][0], steps[1][0]))
    return steps[0][1], gap


def pair_variance(rows: Rows, votes: Sequence[float], f: float) -> float:
    """Half the mean squared distance of the nearest pairs, each as often as the product of its votes.

    As many pairs as rows with all but f of the votes have, if these are the heaviest.
    """
    rest, honest = sum(votes) - f, []
    for k in sorted(votes, reverse=True):
        honest.append(min(k, rest - math.fsum(honest)))
    pairs = math.fsum(a * b for i, a in enumerate(honest) for b in honest[:i])
    near = sorted((squared(a, b), votes[i] * votes[j]) for i, a in enumerate(rows) for j, b in enumerate(rows[:i]))
    left, total = pairs, 0.0
    for gap, count in near:
        total += min(count, left) * gap / 2
        left -= min(count, left)
    return total / pairs if pairs > 1e-9 else 0.0


def rfa(rows: Rows, iterations: int = 10, smoothing: float = 0.1) -> Vector:
    z = [0.0] * len(rows[0])
    for _ in range(iterations):
        w = [1 / max(distance(row, z), smoothing) for row in rows]
        total = math.fsum(w)
        z = weighted_sum([k / total for k in w], rows)
    return z


def floor(sent: Rows, shares: Rows, votes: Sequence[int] | None = None, centre: Vector | None = None) -> float:
    """What mixed rows, with these shares of the rows that were sent, are expected to keep of the middle one's distance.

    Independent rows of one variance: a mean with shares w has sum w^2 of it.
    """
    m = cm(sent) if centre is None else centre
    gaps = [squared(row, m) for row in sent]
    middle = median_of(gaps if votes is None else copies(gaps, votes))
    return middle * math.fsum(w**2 for row in shares for w in row) / len(shares)


def tau_squared(rows: Rows, f: int, v: Vector, m: Vector, V: float) -> float:
    n = len(rows)
    return math.inf if f == 0 else (n - f) / f * (squared(v, m) + V)


def tq(rows: Rows, f: int, iterations: int = 10, least: float = 0.0) -> tuple[Vector, float]:
    """The value, and how near (relatively) any distance ever came to tau: a draw with a small gap decides nothing."""
    n, d = len(rows), len(rows[0])
    m, V = cm(rows), max(spread(rows), least)
    v, gap = m, math.inf
    for _ in range(iterations):
        tau = math.sqrt(tau_squared(rows, f, v, m, V))
        step = [0.0] * d
        for row in rows:
            r = distance(row, v)
            gap = min(gap, relative_gap(r, tau))
            if r <= tau:
                step = [s + (x - c) / n for s, x, c in zip(step, row, v, strict=True)]
        v = [c + s for c, s in zip(v, step, strict=True)]
    return v, gap


def relative_gap(r: float, tau: float) -> float:
    if math.isinf(tau) or r == tau == 0:
        return math.inf
    return abs(r - tau) / max(r, tau)


def clipped_step(rows: Rows, v: Vector, tau: float) -> Vector:
    """v + (1/n) sum_i (x_i - v) min(1, tau/|x_i - v|)."""
    n = len(rows)
    step = [0.0] * len(v)
    for row in rows:
        r = distance(row, v)
        k = 1.0 if r <= tau else tau / r
        step = [s + k * (x - c) / n for s, x, c in zip(step, row, v, strict=True)]
    return [c + s for c, s in zip(v, step, strict=True)]


def huber(rows: Rows, f: int, iterations: int = 10, least: float = 0.0) -> Vector:
    m, V = cm(rows), max(spread(rows), least)
    v = m
    for _ in range(iterations):
        v = clipped_step(rows, v, math.sqrt(tau_squared(rows, f, v, m, V)))
    return v


def cc(rows: Rows, tau: float = 10.0, iterations: int = 1, last: Sequence[float] | None = None) -> Vector:
    v = [0.0] * len(rows[0]) if last is None else list(last)
    for _ in range(iterations):
        v = clipped_step(rows, v, tau)
    return v


def mca(rows: Rows, sigma: float | None = None, iterations: int = 10) -> Vector:
    v = cm(rows)
    for _ in range(iterations):
        r = [distance(row, v) for row in rows]
        width = median_of(r) if sigma is None else sigma
        if width == 0:
            return v
        k = [math.exp(-(q**2) / (2 * width**2)) for q in r]
        if sum(k) == 0:
            k = [float(i == r.index(min(r))) for i in range(len(rows))]
        v = weighted_sum([q / math.fsum(k) for q in k], rows)
    return v


def neighbours(rows: Rows, f: int) -> list[list[int]]:
    """For each row its n-f nearest, itself first."""
    n = len(rows)
    return [sorted(range(n), key=lambda j, i=i: (j != i, squared(rows[i], rows[j]), j))[: n - f] for i in range(n)]


def nnm(rows: Rows, f: int) -> list[Vector]:
    return [mean([rows[j] for j in nearest]) for nearest in neighbours(rows, f)]


def bucketing(rows: Rows, order: Sequence[int], s: int = 2) -> list[Vector]:
    return [mean([rows[i] for i in order[k : k + s]]) for k in range(0, len(order), s)]


def clipping(rows: Rows, norm: float = 1.0) -> list[Vector]:
    mixed = []
    for row in rows:
        length = distance(row, [0.0] * len(row))
        scale = 1.0 if length <= norm else norm / length
        mixed.append([scale * x for x in row])
    return mixed


def nearest_to(rows: Rows, f: int, point: Sequence[float]) -> tuple[Vector, float]:
    """The mean of the n-f rows nearest to a point, and the margin by which the last of them was taken."""
    gaps = [squared(row, point) for row in rows]
    order = sorted(range(len(rows)), key=lambda i: (gaps[i], i))[: len(rows) - f]
    return mean([rows[i] for i in order]), cut_gap(gaps, len(rows) - f)


def cut_gap(values: Sequence[float], k: int) -> float:
    """How far, relatively, the k-th smallest of the values is from the next."""
    s = sorted(values)
    return (s[k] - s[k - 1]) / max(s[k], 1e-300) if 0 < k < len(s) else math.inf


def one_mean(rows: Rows, f: int) -> tuple[Vector, float]:
    scores = krum_scores(rows, f)
    value, gap = nearest_to(rows, f, rows[scores.index(min(scores))])
    return value, min(gap, cut_gap(scores, 1))


def one_centre(rows: Rows, f: int) -> tuple[Vector, float]:
    reach = [sorted(squared(a, b) for b in rows)[len(rows) - f - 1] for a in rows]
    value, gap = nearest_to(rows, f, rows[reach.index(min(reach))])
    return value, min(gap, cut_gap(reach, 1))


def length(row: Sequence[float]) -> float:
    return distance(row, [0.0] * len(row))


def stand_out(rows: Rows) -> tuple[list[float], float]:
    """Each row's square along the direction in which they vary most, and the margin to the next direction."""
    x = np.array(rows, dtype=float)
    away = x - x.mean(axis=0)
    _, lengths, directions = np.linalg.svd(away, full_matrices=False)
    if not len(lengths) or lengths[0] < 1e-10:
        return [0.0] * len(rows), math.inf
    gap = relative_gap(float(lengths[0]), float(lengths[1])) if len(lengths) > 1 else math.inf
    return [float(p) for p in (away @ directions[0]) ** 2], gap


def dnc(rows: Rows, f: int, drop: float = 1.0) -> tuple[Vector, float]:
    along, gap = stand_out(rows)
    kept = max(len(rows) - int(drop * f), 1)
    order = sorted(range(len(rows)), key=lambda i: (along[i], i))[:kept]
    return mean([rows[i] for i in order]), min(gap, cut_gap(along, kept)) if kept < len(rows) else math.inf


def best_subset(rows: Rows, f: int, score: Callable[[Sequence[int]], float]) -> tuple[Vector, float]:
    """The mean of the n-f rows with the least score, and the margin to the next choice."""
    choices = [(score(kept), kept) for kept in combinations(range(len(rows)), len(rows) - f)]
    choices.sort(key=lambda choice: choice[0])
    gap = relative_gap(choices[0][0], choices[1][0]) if len(choices) > 1 else math.inf
    same = len(choices) > 1 and choices[0][0] == choices[1][0]
    return mean([rows[i] for i in choices[0][1]]), 0.0 if same else gap


def smea(rows: Rows, f: int) -> tuple[Vector, float]:
    x = np.array(rows, dtype=float)

    def top(kept: Sequence[int]) -> float:
        away = x[list(kept)] - x[list(kept)].mean(axis=0)
        return float(np.linalg.svd(away, compute_uv=False)[0] ** 2) if away.size else 0.0

    return best_subset(rows, f, top)


def mda(rows: Rows, f: int) -> tuple[Vector, float]:
    gaps = [[squared(a, b) for b in rows] for a in rows]
    return best_subset(rows, f, lambda kept: max(gaps[i][j] for i in kept for j in kept))


def meamed(rows: Rows, f: int) -> tuple[Vector, float]:
    value, gap, h = [], math.inf, len(rows) - f
    for j in range(len(rows[0])):
        column = [row[j] for row in rows]
        m = median_of(column)
        near = sorted(column, key=lambda x, m=m: abs(x - m))
        value.append(math.fsum(near[:h]) / h)
        gaps, room = [abs(x - m) for x in column], 1e-9 * max(map(abs, column))
        tied = [x for x, away in zip(column, gaps, strict=True) if abs(away - abs(near[h - 1] - m)) <= room]
        if max(tied) - min(tied) > room or cut_gap(gaps, h) > 1e-6:  # equal values stand for each other
            gap = min(gap, cut_gap(gaps, h))
    return value, gap


def clip_longest(rows: Rows, f: int) -> list[Vector]:
    """ARC."""
    n = len(rows)
    lengths = [length(row) for row in rows]
    return clipping(rows, sorted(lengths)[n - 1 - math.floor(2 * f * (n - f) / n)])


def clip_to_median(rows: Rows, times: float = 1.0) -> list[Vector]:
    return clipping(rows, times * median_of([length(row) for row in rows]))


def fltrust(rows: Rows, root: Sequence[float]) -> tuple[Vector, float]:
    """The value, and the least cosine by which anybody was trusted or not."""
    zero = [0.0] * len(root)
    if not any(root):
        return zero, math.inf
    cosines = [
        math.fsum(a * b for a, b in zip(row, root, strict=True)) / (length(row) * length(root)) if any(row) else 0.0
        for row in rows
    ]
    trust = [max(0.0, cosine) for cosine in cosines]
    if not any(trust):
        return zero, min(map(abs, cosines))
    whole = math.fsum(trust) / length(root)
    weights = [w / whole / length(row) if w else 0.0 for w, row in zip(trust, rows, strict=True)]
    return weighted_sum(weights, rows), min(map(abs, cosines))


def bulyan(rows: Rows, f: int) -> tuple[Vector, float]:
    left, picked, gap = [list(row) for row in rows], [], math.inf
    for _ in range(len(rows) - 2 * f):
        scores = krum_scores(left, f)
        gap = min(gap, cut_gap(scores, 1))
        picked.append(left.pop(scores.index(min(scores))))
    value, near = meamed(picked, len(picked) - max(len(rows) - 4 * f, 2 - len(rows) % 2))
    return value, min(gap, near)


def foolsgold(rows: Rows, past: Rows | None = None, sharpness: float = 1.0) -> tuple[Vector, float]:
    """The value, and the margin by which a row was pardoned, weighed or not at all."""
    sums, gap = rows if past is None else past, math.inf

    def cosine(a: Sequence[float], b: Sequence[float]) -> float:
        return math.fsum(p * q for p, q in zip(a, b, strict=True)) / (length(a) * length(b)) if any(a) and any(b) else 0

    alike = [[cosine(a, b) if i != j else 0.0 for j, b in enumerate(sums)] for i, a in enumerate(sums)]
    most = [max(row) for row in alike]
    apart = []
    for i, row in enumerate(alike):
        apart.append(1 - max(c * most[i] / most[j] if most[i] < most[j] else c for j, c in enumerate(row)))
    gap = min([gap, *(abs(a) for a in apart)])
    if max(apart) <= 1e-5:
        return mean(rows), gap
    weights = []
    for a in apart:
        part = min(a / max(apart), 0.99)
        logit = sharpness * (math.log(part / (1 - part)) + 0.5) if part > 0 else -math.inf
        gap = min(gap, abs(part - 0.99) if part < 0.99 else math.inf)
        weights.append(min(max(logit, 0.0), 1.0))
    return weighted_sum([w / math.fsum(weights) for w in weights], rows), gap


def signguard(rows: Rows, lower: float = 0.1, upper: float = 3.0) -> tuple[Vector, float]:
    """The value, and the margin by which a row's length or its place among the points was decided."""
    n, d, gap = len(rows), len(rows[0]), math.inf
    lengths = [length(row) for row in rows]
    usual = median_of(lengths)
    for size in lengths:
        gap = min(gap, relative_gap(size, lower * usual), relative_gap(size, upper * usual))
    passing = [i for i, size in enumerate(lengths) if lower * usual <= size <= upper * usual]
    points = [[sum(v > 0 for v in row) / d, sum(v == 0 for v in row) / d, sum(v < 0 for v in row) / d] for row in rows]
    width = sum(sorted(distance(p, q) for q in points)[max(n // 2, 1) - 1] for p in points) / n
    at = points
    for _ in range(30):
        moved = []
        for p in at:
            gap = min([gap, *(abs(distance(p, q) - width - 1e-9) * 1e3 for q in points)])
            moved.append(mean([q for q in points if distance(p, q) <= width + 1e-9]))
        at = moved
    company = [sum(distance(p, q) <= width + 1e-9 for q in points) for p in at]
    best = at[company.index(max(company))]
    if any(size == max(company) and distance(p, best) > 1e-9 for p, size in zip(at, company, strict=True)):
        gap = 0.0
    gap = min([gap, *(abs(distance(p, best) - width - 1e-9) * 1e3 for p in at)])
    chosen = [i for i in passing if distance(at[i], best) <= width + 1e-9] or passing or [*range(n)]
    scaled_rows = [[v * min(1, usual / lengths[i]) if lengths[i] else v for v in rows[i]] for i in chosen]
    return mean(scaled_rows), gap
