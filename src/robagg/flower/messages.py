"""Messages as replies by client name: those to what was asked, from whom it was asked."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flwr.app import Message, RecordDict

from robagg.server import Failure, Reply, UnfitError
from robagg.server.quote import quote_end

LOGGER = logging.getLogger("flwr")
"""Flower's own, so that `flwr run --stream` and `flwr log` show it."""


@dataclass(frozen=True)
class Answers:
    """What came back in a round, by node id as text."""

    asked: tuple[str, ...]
    replies: dict[str, Reply | Failure | UnfitError] = field(default_factory=dict)
    contents: dict[str, RecordDict] = field(default_factory=dict)
    """The messages' contents, for functions of the user's."""


def sort_messages(
    messages: Sequence[Message],
    asked: Sequence[Message],
    *,
    size_key: str,
    needs_size: bool = False,
    train: bool = True,
) -> Answers:
    """The answers to `asked`. One node has one voice: its first; and nobody can answer for another."""
    nodes = {message.metadata.message_id: message.metadata.dst_node_id for message in asked}
    answers = Answers(tuple(str(message.metadata.dst_node_id) for message in asked))
    failed: dict[str, Reply | Failure | UnfitError] = {}
    for message in messages:
        sender, question = message.metadata.src_node_id, message.metadata.reply_to_message_id
        node = str(nodes.get(question, sender) if any(nodes) else sender)  # a grid may give messages no ids
        if message.has_error():
            # A dead node's error does not carry its id, but it does say which message it is about.
            failed.setdefault(node, Failure(f"error {message.error.code}: {quote_end(message.error.reason)}"))
        elif node != str(sender) or (any(nodes) and question not in nodes):
            LOGGER.warning("robagg: node %d answers what it was not asked, which does not count", sender)
        elif node not in answers.replies:
            answers.replies[node] = read_reply(message, size_key=size_key, needs_size=needs_size, train=train)
            answers.contents[node] = message.content
    for name in answers.asked:
        if name not in answers.replies:
            answers.replies[name] = failed.get(name, Failure("no reply before the timeout"))
    return answers


def read_reply(message: Message, *, size_key: str, needs_size: bool, train: bool) -> Reply | UnfitError:
    """The arrays and metrics of a message, or why it has none."""
    arrays, metrics = message.content.array_records, message.content.metric_records
    if len(metrics) > 1:
        return UnfitError(f"holds {len(metrics)} metric records where one is expected")
    record: Mapping[str, Any] = next(iter(metrics.values()), {})
    if needs_size and record.get(size_key) is None:
        return UnfitError(f"does not say its {size_key!r}")
    if train and len(arrays) != 1:
        return UnfitError(f"holds {len(arrays)} array records where one is expected")
    return Reply(next(iter(arrays.values()), {}), record.get(size_key), record)
