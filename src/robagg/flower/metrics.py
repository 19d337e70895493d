"""Metrics of many clients as one: a trimmed mean of each, so that a claim moves it as little as an update may."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Sequence

from flwr.app import MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg

from robagg.flower.screen import Reply
from robagg.liars import remaining_liars
from robagg.rule import Rule

MetricsFunction = Callable[[list[RecordDict], str], MetricRecord | None]
_PLAIN: MetricsFunction = FedAvg().train_metrics_aggr_fn
"""Flower's weighted average: its presence says that nobody asked for anything else."""


def summarise(function: MetricsFunction, replies: Sequence[Reply], rule: Rule, size_key: str) -> MetricRecord:
    """The metrics of the replies by the user's own function, or by a trimmed mean where there is none."""
    if function is not _PLAIN:
        try:
            return MetricRecord(dict(function([reply.message.content for reply in replies], size_key) or {}))
        except Exception:
            logging.getLogger("flwr").exception("robagg: the function that aggregates metrics failed")
            return MetricRecord()
    n = len(replies)
    try:
        f = rule.core.count_liars(n)
    except ValueError:
        f = (n - 1) // 2
    return average_metrics([reply.metrics for reply in replies], f, leave_out=size_key)


def average_metrics(records: Sequence[MetricRecord | None], f: int, *, leave_out: str) -> MetricRecord:
    """Of each metric the mean without its f largest and f smallest values; values that are not finite do not count.

    A metric that too few replies hold for f of them to be trimmed is left out, as is the size of the clients' data.
    """
    result = MetricRecord()
    names = dict.fromkeys(name for record in records if record is not None for name in record)
    for name in names:
        values = [None if record is None else record.get(name) for record in records]
        if name == leave_out:
            continue
        lengths = Counter(len(v) if isinstance(v, list) else None for v in values if v is not None)
        length = lengths.most_common(1)[0][0]
        if length is None:
            mean = trim_mean([v for v in values if not isinstance(v, list)], f)
            if mean is not None:
                result[name] = mean
            continue
        lists = [v for v in values if isinstance(v, list) and len(v) == length]
        absent: list[int | float | None] = [None] * (len(values) - len(lists))
        means = [trim_mean([*column, *absent], f) for column in zip(*lists, strict=True)]
        if all(mean is not None for mean in means):
            result[name] = [mean for mean in means if mean is not None]
    return result


def trim_mean(values: Sequence[int | float | None], f: int) -> float | None:
    """The mean without the f largest and f smallest; None where f of the values could decide it.

    >>> trim_mean([1.0, 2.0, 3.0, 1e12], f=1)
    2.5
    >>> trim_mean([1.0, float("nan"), 3.0], f=1)
    2.0
    """
    known = sorted(number for value in values if (number := _finite(value)) is not None)
    left = remaining_liars(min(f, (len(values) - 1) // 2), len(values), len(values) - len(known))
    if left is None:
        return None
    middle = known[left : len(known) - left]
    # A sum of quotients: the sum of the largest numbers there are would be none.
    return math.fsum(value / len(middle) for value in middle)


def _finite(value: int | float | None) -> float | None:
    try:
        number = math.nan if value is None else float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
