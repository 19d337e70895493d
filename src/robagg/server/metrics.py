"""Metrics of many clients as one: a trimmed mean of each, so that a claim moves it as little as an update may."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from robagg._core.checks import is_number
from robagg._core.rule import Rule
from robagg._core.tolerance import tolerance_left

Number = int | float | list[int] | list[float]


def summarise_metrics(records: Sequence[Mapping[str, Any]], rule: Rule, *, leave_out: str = "") -> dict[str, Number]:
    """The metrics of the clients that were believed, without as many at each end as the rule tolerates."""
    n = len(records)
    try:
        f = rule.core.resolve_f(n)
    except ValueError:
        f = (n - 1) // 2
    return average_metrics(records, f, leave_out=leave_out)


def average_metrics(records: Sequence[Mapping[str, Any]], f: int, *, leave_out: str = "") -> dict[str, Number]:
    """Of each metric the mean without its f largest and f smallest values; values that are not finite do not count.

    A metric that too few replies hold for f of them to be trimmed is left out, as is the size of the clients' data.
    """
    n = len(records)
    # Counted before any number is looked at: what one client alone sends, however much it is, costs next to nothing.
    holders = Counter(name for record in records for name in record if isinstance(name, str))
    columns: dict[str, list[Any]] = {
        name: [] for name, count in holders.items() if name != leave_out and _left(count, n, f) is not None
    }
    for record in records:
        for name, value in record.items():
            if name in columns:
                columns[name].append(value)
    result: dict[str, Number] = {}
    for name, values in columns.items():
        lengths = Counter(len(value) if isinstance(value, list) else None for value in values)
        length, count = lengths.most_common(1)[0]
        if _left(count, n, f) is None:
            continue
        if length is None:
            means = [trim_mean([value for value in values if not isinstance(value, list)], f, n)]
        else:
            lists = [value for value in values if isinstance(value, list) and len(value) == length]
            means = [trim_mean(column, f, n) for column in zip(*lists, strict=True)]
        known = [mean for mean in means if mean is not None]
        if len(known) == len(means):
            result[name] = known[0] if length is None else known
    return result


def trim_mean(values: Sequence[Any], f: int, n: int) -> float | None:
    """The mean without the f largest and f smallest, of what n clients sent; None where f of them could decide it.

    >>> trim_mean([1.0, 2.0, 3.0, 1e12], f=1, n=4)
    2.5
    >>> trim_mean([1.0, float("nan"), 3.0], f=1, n=3)
    2.0
    """
    known = sorted(number for value in values if (number := _finite(value)) is not None)
    left = _left(len(known), n, f)
    if left is None:
        return None
    middle = known[left : len(known) - left]
    top = max(map(abs, middle)) or 1.0  # of the largest numbers there are, even a mean by quotients would overflow
    return math.fsum(value / top for value in middle) / len(middle) * top


def _left(known: int, n: int, f: int) -> int | None:
    """How many of the known values may be Byzantine; None where they are too few of n."""
    return tolerance_left(min(f, (n - 1) // 2), n, n - known)


def _finite(value: Any) -> float | None:
    if not is_number(value):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
