"""Momentum at the worker: honest updates become more alike from round to round, which leaves liars less room."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, MessageType

from robagg.flower.model import STATISTICS, GlobalModel, pack
from robagg.flower.npy import view

STATE = "robagg.momentum"
"""The record of a client's context that holds its momentum: it outlives the process that answers a message."""

ClientAppCallable = Callable[[Message, Context], Message]
Mod = Callable[[Message, Context, ClientAppCallable], Message]


def worker_momentum(mu: float, *, aside: Sequence[str] = STATISTICS) -> Mod:
    """A client mod that sends the momentum of a client's updates instead of its last update.

        g <- mu g + (1 - mu) (x - w),    the client sends w + g

    where w is the model it got, x the one it trained, and g starts at 0. Integer arrays and those that `aside` names
    are sent as they are. The client app itself stays as it is:

        app = ClientApp(mods=[worker_momentum(0.9)])

    Args:
        mu: how much of the past stays, 0 <= mu < 1; the paper uses 0.9 and 0.99.
        aside: patterns of names of arrays that are statistics, not parameters.
    """
    if not 0 <= mu < 1:
        raise ValueError(f"worker_momentum wants 0 <= mu < 1, got {mu}")

    def add_momentum(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        if message.metadata.message_type.split(".")[0] != MessageType.TRAIN:
            return call_next(message, context)
        sent = next(iter(message.content.array_records.values())).copy()
        reply = call_next(message, context)
        if reply.has_error() or len(reply.content.array_records) != 1:
            return reply
        key, trained = next(iter(reply.content.array_records.items()))
        reply.content[key] = _mix(sent, trained, context, mu, aside)
        return reply

    return add_momentum


def _mix(sent: ArrayRecord, trained: ArrayRecord, context: Context, mu: float, aside: Sequence[str]) -> ArrayRecord:
    model = GlobalModel(sent, aside)
    start = model.flat(model.measured)
    x = {spec.name: view(trained[spec.name], spec) for spec in model.measured}
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
    for spec in model.measured:
        mixed[spec.name] = pack(spec, start[spec.name] + momentum[spec.name])
    return mixed
