"""The strategy inside: FedAdam and its like, which get the robust value as if it were one reply."""

from __future__ import annotations

import logging
from collections.abc import Callable

from flwr.app import ArrayRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg

from robagg.flower.combine import Combined
from robagg.flower.model import GlobalModel, pack

SHARED = (
    "fraction_train",
    "fraction_evaluate",
    "min_train_nodes",
    "min_evaluate_nodes",
    "min_available_nodes",
    "weighted_by_key",
    "arrayrecord_key",
    "configrecord_key",
    "train_metrics_aggr_fn",
    "evaluate_metrics_aggr_fn",
)
"""What a FedAvg is made of; the strategy outside takes them over from the one inside."""


def hand_on(
    inner: FedAvg, server_round: int, model: GlobalModel, combined: Combined, metrics: MetricRecord
) -> ArrayRecord | None:
    """The inner strategy's next model; integer arrays and statistics are not for its optimiser and stay the rule's."""
    told = MetricRecord({**metrics, inner.weighted_by_key: 1.0})
    content = RecordDict({inner.arrayrecord_key: model.record(combined.values), "metrics": told})
    reply = Message(content, dst_node_id=0, message_type=MessageType.TRAIN)
    arrays, _ = inner.aggregate_train(server_round, [reply])
    if arrays is None:
        return None
    result = ArrayRecord()
    for spec in model.specs.values():
        own = combined.values[spec.name] if spec.aside else arrays[spec.name].numpy()
        result[spec.name] = pack(spec, own.ravel(order="F" if spec.fortran else "C"))
    return result


def average_plainly(
    aggregate: Callable[..., tuple[ArrayRecord | None, MetricRecord | None]],
    server_round: int,
    messages: list[Message],
    told: MetricRecord,
) -> tuple[ArrayRecord | None, MetricRecord]:
    """What a strategy without a rule makes of the replies, with what the rule has to say; if it raises, nothing."""
    try:
        arrays, metrics = aggregate(server_round, messages)
    except Exception as error:
        logging.getLogger("flwr").error("robagg: plain averaging failed, the model is kept: %s", error)
        arrays, metrics = None, None
    return arrays, MetricRecord({**(metrics or {}), **told})
