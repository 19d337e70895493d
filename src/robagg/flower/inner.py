"""The strategy inside: FedAdam and its like, which get the robust value as if it were one reply."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Literal

import numpy as np
from flwr.app import ArrayRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg

from robagg.flower.metrics import call
from robagg.flower.model import GlobalModel, pack
from robagg.flower.npy import Spec
from robagg.server.model import Flat, UnfitError
from robagg.server.quote import quote

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
    inner: FedAvg, server_round: int, model: GlobalModel, values: Mapping[str, Flat], metrics: MetricRecord
) -> tuple[ArrayRecord | None, str]:
    """The inner strategy's next model, or why there is none.

    Integer arrays and statistics are not for its optimiser and stay the rule's; what nobody sends, the model's.
    """
    record = MetricRecord({**metrics, inner.weighted_by_key: 1.0})
    content = RecordDict({inner.arrayrecord_key: model.rebuild(values), "metrics": record})
    reply = Message(content, dst_node_id=0, message_type=MessageType.TRAIN)
    own = {
        name: values[name] if name in values else model.look(spec)
        for name, spec in model.specs.items()
        if spec.aside or name not in values
    }
    name = type(inner).__name__
    try:
        # The metrics are made already, and a function of the user's need not find in its own result what it reads.
        with metrics_by(inner, "train", lambda contents, size_key: MetricRecord()):
            arrays, _ = inner.aggregate_train(server_round, [reply])
        return (None, f"{name} made no model of the robust value") if arrays is None else (fit(arrays, model, own), "")
    except Exception as error:
        return None, f"{name} failed on the robust value: {quote(error, 300)}"


def average_plainly(
    strategy: FedAvg,
    aggregate: Callable[..., tuple[ArrayRecord | None, MetricRecord | None]],
    server_round: int,
    messages: list[Message],
    model: GlobalModel,
) -> tuple[ArrayRecord | None, MetricRecord]:
    """What a strategy's own way to aggregate makes of the replies, without a rule; if it raises, nothing."""
    try:
        with metrics_by(strategy, "train", partial(call, strategy.train_metrics_aggr_fn)):
            arrays, metrics = aggregate(server_round, _leave_out_errors(messages))
        return None if arrays is None else fit(arrays, model, {}), metrics or MetricRecord()
    except Exception as error:
        logging.getLogger("flwr").error("robagg: plain averaging failed, the model is kept: %s", quote(error, 300))
        return None, MetricRecord()


def evaluate_plainly(
    strategy: FedAvg, aggregate: Callable[..., MetricRecord | None], server_round: int, messages: list[Message]
) -> MetricRecord | None:
    """The metrics of an evaluation in a strategy's own way; if it raises, none."""
    try:
        with metrics_by(strategy, "evaluate", partial(call, strategy.evaluate_metrics_aggr_fn)):
            return aggregate(server_round, _leave_out_errors(messages))
    except Exception as error:
        logging.getLogger("flwr").error("robagg: plain evaluation failed: %s", quote(error, 300))
        return None


def _leave_out_errors(messages: list[Message]) -> list[Message]:
    """Flower logs an error as the client wrote it; ours are logged already, in characters that can be printed."""
    return [message for message in messages if not message.has_error()]


@contextmanager
def metrics_by(
    strategy: FedAvg, kind: Literal["train", "evaluate"], function: Callable[[list[RecordDict], str], MetricRecord]
) -> Iterator[None]:
    """Let a strategy aggregate metrics by another function for once."""
    name = f"{kind}_metrics_aggr_fn"
    own = getattr(strategy, name)
    setattr(strategy, name, function)
    try:
        yield
    finally:
        setattr(strategy, name, own)


def fit(arrays: ArrayRecord, model: GlobalModel, own: Mapping[str, Flat]) -> ArrayRecord:
    """Another strategy's arrays in the model's dtypes; those in `own`, which are flat, are taken instead.

    FedAvg makes floating numbers of whole ones, and they would be measured as if they were weights in the next round.
    Whole numbers that come back beyond their dtype are the model's own.
    """
    if arrays.keys() != model.specs.keys():
        raise UnfitError(f"arrays must be named as the model's are, got {quote(', '.join(arrays))}")
    result = ArrayRecord()
    for spec in model.specs.values():
        value = own[spec.name] if spec.name in own else _cast(arrays[spec.name].numpy(), spec)
        result[spec.name] = model.arrays[spec.name] if value is None else pack(spec, value)
    return result


def _cast(value: Flat, spec: Spec) -> Flat | None:
    """The flat numbers in the model's dtype, whole ones rounded; None where that does not hold them."""
    if value.shape != spec.shape or value.dtype.kind not in "fiub":
        came = f"{quote(value.dtype)} of shape {value.shape}"
        raise UnfitError(f"{spec.name!r} must be real numbers of shape {spec.shape}, got {came}")
    whole = np.rint(value) if spec.whole and value.dtype.kind == "f" else value
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = whole.astype(spec.numpy_dtype)
    if spec.whole and not np.array_equal(numbers, whole):
        return None
    return numbers.ravel(order="F" if spec.fortran else "C")
