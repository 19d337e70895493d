"""Metrics of many clients as one: a trimmed mean of each, so that a claim moves it as little as an update may."""

from __future__ import annotations

import logging
import math
import traceback
from collections import Counter
from collections.abc import Callable, Sequence

from flwr.app import MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg

from robagg._core.rule import Rule
from robagg._core.tolerance import tolerance_left
from robagg.flower.quote import escape
from robagg.flower.screen import Reply

MetricsFunction = Callable[[list[RecordDict], str], MetricRecord | None]
_PLAIN: MetricsFunction = FedAvg().train_metrics_aggr_fn
"""Flower's weighted average: its presence says that nobody asked for anything else."""


def summarise(function: MetricsFunction, replies: Sequence[Reply], rule: Rule, size_key: str) -> MetricRecord:
    """The metrics of the replies by the user's own function, or by a trimmed mean where there is none."""
    if function is not _PLAIN:
        return call(function, [reply.message.content for reply in replies], size_key)
    n = len(replies)
    try:
        f = rule.core.resolve_f(n)
    except ValueError:
        f = (n - 1) // 2
    return average_metrics([reply.metrics for reply in replies], f, leave_out=size_key)


def call(function: MetricsFunction, contents: list[RecordDict], size_key: str) -> MetricRecord:
    """What a function makes of the metrics; none where it fails, which must not end the run."""
    try:
        return MetricRecord(dict(function(contents, size_key) or {}))
    except Exception:
        told = escape(traceback.format_exc(), keep="\n")
        logging.getLogger("flwr").error("robagg: the function for metrics failed; the round has none\n%s", told)
        return MetricRecord()


def average_metrics(records: Sequence[MetricRecord | None], f: int, *, leave_out: str) -> MetricRecord:
    """Of each metric the mean without its f largest and f smallest values; values that are not finite do not count.

    A metric that too few replies hold for f of them to be trimmed is left out, as is the size of the clients' data.
    """
    n, told = len(records), [record for record in records if record is not None]
    # Counted before any number is looked at: what one client alone tells, however much it is, costs next to nothing.
    holders = Counter(name for record in told for name in record)
    columns: dict[str, list[int | float | list[int] | list[float]]] = {
        name: [] for name, count in holders.items() if name != leave_out and _left(count, n, f) is not None
    }
    for record in told:
        for name, value in record.items():
            if name in columns:
                columns[name].append(value)
    result = MetricRecord()
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


def trim_mean(values: Sequence[int | float], f: int, n: int) -> float | None:
    """The mean without the f largest and f smallest, of what n clients told; None where f of them could decide it.

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
    """How many of the known values may lie; None where they are too few of n."""
    return tolerance_left(min(f, (n - 1) // 2), n, n - known)


def _finite(value: int | float) -> float | None:
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
