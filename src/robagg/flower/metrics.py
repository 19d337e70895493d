"""Metrics of a round: by a function of the user's where there is one, else the server's trimmed means."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Sequence

from flwr.app import MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg

from robagg._core.rule import Rule
from robagg.server.metrics import summarise_metrics
from robagg.server.quote import escape
from robagg.server.screen import Screened

MetricsFunction = Callable[[list[RecordDict], str], MetricRecord | None]
_PLAIN: MetricsFunction = FedAvg().train_metrics_aggr_fn
"""Flower's weighted average: its presence says that nobody asked for anything else."""


def summarise(
    function: MetricsFunction, replies: Sequence[Screened], contents: dict[str, RecordDict], rule: Rule, size_key: str
) -> MetricRecord:
    """The metrics of the replies by the user's own function, or by a trimmed mean where there is none."""
    if function is not _PLAIN:
        return call(function, [contents[reply.client] for reply in replies], size_key)
    return MetricRecord(summarise_metrics([reply.metrics for reply in replies], rule, leave_out=size_key))


def call(function: MetricsFunction, contents: list[RecordDict], size_key: str) -> MetricRecord:
    """What a function makes of the metrics; none where it fails, which must not end the run."""
    try:
        return MetricRecord(dict(function(contents, size_key) or {}))
    except Exception:
        trace = escape(traceback.format_exc(), keep="\n")
        logging.getLogger("flwr").error("robagg: the function for metrics failed; the round has none\n%s", trace)
        return MetricRecord()
