"""Momentum at the worker: honest updates become more alike, which leaves Byzantine clients less room."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MessageType

from robagg.flower.model import GlobalModel, pack
from robagg.flower.npy import view
from robagg.server.model import STATISTICS, UnfitError, read_patterns

STATE = "robagg.momentum"
"""The record of a client's context that holds its momentum: it outlives the process that answers a message."""

ClientAppCallable = Callable[[Message, Context], Message]
Mod = Callable[[Message, Context, ClientAppCallable], Message]


def worker_momentum(mu: float, *, aside: str | Sequence[str] = STATISTICS) -> Mod:
    """A client mod that sends the momentum of a client's updates instead of its last update.

        g <- mu g + (1 - mu) (x - w),    the client sends w + g

    where w is the model it got, x the one it trained, and g starts at 0. Integer arrays and those that `aside` names
    are sent as they are; so is a reply that is no trained copy of the model, and the first one gives a warning. The
    client app itself stays as it is:

        app = ClientApp(mods=[worker_momentum(0.9)])

    Args:
        mu: how much of the past stays, 0 <= mu < 1; the paper uses 0.9 and 0.99.
        aside: one pattern or several of names of arrays that are statistics, not parameters.
    """
    if not 0 <= mu < 1:
        raise ValueError(f"mu must be a number from 0 to below 1, got {mu}")

    patterns = read_patterns(aside)
    warned = False

    def add_momentum(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        nonlocal warned
        if message.metadata.message_type.split(".")[0] != MessageType.TRAIN:
            return call_next(message, context)
        sent = {key: record.copy() for key, record in message.content.array_records.items()}
        reply = call_next(message, context)
        if reply.has_error():
            return reply
        try:
            _, model = _take_one(sent, "message")
            key, trained = _take_one(reply.content.array_records, "reply")
            reply.content[key] = _mix(GlobalModel(model, patterns), trained, context, mu)
        except ValueError as unfit:  # what a reply should be is the server's to judge
            if not warned:
                logging.getLogger("flwr").warning("robagg: a reply is sent without worker momentum: %s", unfit)
            warned = True
        return reply

    return add_momentum


def _take_one(records: Mapping[str, ArrayRecord], where: str) -> tuple[str, ArrayRecord]:
    if len(records) != 1:
        raise UnfitError(f"the {where} holds {len(records)} array records where one is expected")
    return next(iter(records.items()))


def _mix(model: GlobalModel, trained: ArrayRecord, context: Context, mu: float) -> ArrayRecord:
    if missing := [spec.name for spec in model.measured if spec.name not in trained]:
        raise UnfitError(f"the reply lacks {', '.join(missing)}")
    specs = [model.specs[spec.name] for spec in model.measured]
    start = {spec.name: model.look(spec) for spec in specs}
    x = {spec.name: view(trained[spec.name], spec) for spec in specs}
    update = {name: np.subtract(x[name], start[name], dtype=np.promote_types(x[name].dtype, np.float32)) for name in x}
    if not all(np.isfinite(part).all() for part in update.values()):
        return trained  # one round that blew up must not stay in the memory for ever
    state = context.state.get(STATE)
    if isinstance(state, ArrayRecord) and {k: a.shape for k, a in state.items()} == {k: v.shape for k, v in x.items()}:
        momentum = {name: mu * state[name].numpy() + (1 - mu) * update[name] for name in update}
    else:
        momentum = {name: (1 - mu) * part for name, part in update.items()}
    momentum = {name: part.astype(update[name].dtype, copy=False) for name, part in momentum.items()}
    context.state[STATE] = ArrayRecord({name: Array(part) for name, part in momentum.items()})
    mixed = trained.copy()
    for spec in specs:
        mixed[spec.name] = pack(spec, start[spec.name] + momentum[spec.name])
    return mixed
