"""Looks at every reply by itself, before anything else does: what cannot be used is dropped with a reason."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from flwr.app import Message, MetricRecord

from robagg.flower.model import Flat, GlobalModel
from robagg.flower.npy import UnfitError, view
from robagg.flower.quote import quote_end


@dataclass(frozen=True)
class Reply:
    """One node's answer: what can be used of it, or why nothing can."""

    node: int
    message: Message
    arrays: Mapping[str, Flat] = field(default_factory=dict)
    """Flat views on the message's bytes."""
    metrics: MetricRecord | None = None
    size: float | None = None
    """How many examples it claims to have; None where it does not say."""
    reason: str = ""
    """Why it is broken; empty for a sound one."""


@dataclass(frozen=True)
class Replies:
    """The replies of a round."""

    given: tuple[Reply, ...]
    """Those that came with content, broken ones included: n of them."""
    failed: Mapping[int, str]
    """Nodes that answered with an error or not at all, and what happened: they lower n."""

    @property
    def sound(self) -> list[Reply]:
        return [reply for reply in self.given if not reply.reason]


def screen(
    messages: Sequence[Message],
    asked: Sequence[Message],
    model: GlobalModel | None,
    *,
    size_key: str,
    needs_size: bool = False,
) -> Replies:
    """Sort the answers to `asked`; without a model (an evaluation) only metrics are looked at."""
    nodes = {m.metadata.message_id: m.metadata.dst_node_id for m in asked if m.metadata.message_id}
    given: dict[int, Reply] = {}
    failed: dict[int, str] = {}
    for message in messages:
        # A dead node's error does not carry its id, but it does say which message it is about.
        node = nodes.get(message.metadata.reply_to_message_id, message.metadata.src_node_id)
        if message.has_error():
            failed.setdefault(node, f"error {message.error.code}: {quote_end(message.error.reason)}")
        elif node not in given:  # one node, one voice
            given[node] = _screen_one(node, message, model, size_key, needs_size)
    for node in nodes.values():
        if node not in given:
            failed.setdefault(node, "no reply before the timeout")
    return Replies(tuple(given.values()), {node: why for node, why in failed.items() if node not in given})


def find_fault(reply: Reply) -> str:
    """Why a reply is broken, also by NaN or Inf, which is otherwise left to the rule's own pass to find."""
    if reply.reason:
        return reply.reason
    return "" if all(np.isfinite(array).all() for array in reply.arrays.values()) else "not finite"


def _screen_one(node: int, message: Message, model: GlobalModel | None, size_key: str, needs_size: bool) -> Reply:
    try:
        metrics, size = _read_metrics(message, size_key, needs_size)
        arrays = {} if model is None else _read_arrays(message, model)
    except UnfitError as unfit:
        return Reply(node, message, reason=str(unfit))
    except Exception as error:  # whatever a hostile message can provoke must not end the run
        return Reply(node, message, reason=f"unreadable ({type(error).__name__}: {quote_end(error)})")
    return Reply(node, message, arrays, metrics, size)


def _read_arrays(message: Message, model: GlobalModel) -> dict[str, Flat]:
    records = message.content.array_records
    if len(records) != 1:
        raise UnfitError(f"holds {len(records)} array records where one is expected")
    record = next(iter(records.values()))
    if record.keys() != model.specs.keys():
        missing = [name for name in model.specs if name not in record]
        extra = [name for name in record if name not in model.specs]
        told = [f"lacks {_name(missing)}"] * bool(missing) + [f"has {_name(extra)} too many"] * bool(extra)
        raise UnfitError(" and ".join(told))
    arrays = {name: view(record[name], spec) for name, spec in model.specs.items()}
    # The measured arrays need no look: the rule's own pass raises the alarm. These do not go through that pass.
    for spec in model.statistics:
        if not np.isfinite(arrays[spec.name]).all():
            raise UnfitError(f"{spec.name!r} is not finite")
    return arrays


def _read_metrics(message: Message, size_key: str, needs_size: bool) -> tuple[MetricRecord | None, float | None]:
    records = message.content.metric_records
    if len(records) > 1:
        raise UnfitError(f"holds {len(records)} metric records where one is expected")
    metrics = next(iter(records.values()), None)
    claim = None if metrics is None else metrics.get(size_key)
    if claim is None:
        if needs_size:
            raise UnfitError(f"does not say its {size_key!r}")
        return metrics, None
    try:
        size = math.nan if isinstance(claim, list) else float(claim)
    except OverflowError:
        size = math.inf
    if not 0 <= size < math.inf:
        raise UnfitError(f"claims {quote_end(claim)} as its {size_key!r}")
    return metrics, size


def _name(names: list[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"'{quote_end(names[0])}'{more}"
