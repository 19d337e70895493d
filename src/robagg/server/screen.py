"""Looks at every reply by itself, before anything else does: what cannot be used is dropped with a reason."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import torch

from robagg._core.leaf import describe_kind
from robagg.server.model import Flat, Model, UnfitError
from robagg.server.quote import quote, quote_end

LONGEST = 300
"""The characters of a reason that are kept: part of it may be a client's own words."""

MOST_METRICS = 10_000
"""How many metrics of a reply are read: each costs memory, and anybody can send any number."""


@dataclass(frozen=True)
class Reply:
    """What a client sent.

    Args:
        arrays: names and tensors or NumPy arrays.
        size: how many examples it claims to have; None where it does not say.
        metrics: names and numbers, or lists of numbers.
    """

    arrays: Mapping[str, Any] = field(default_factory=dict)
    size: Any = None
    metrics: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """A client that was asked and sent nothing that could be a reply: it lowers n.

    Args:
        reason: why nothing came, in a few words.
    """

    reason: str


@dataclass(frozen=True)
class Screened:
    """One client's reply: what can be used of it, or why nothing can."""

    client: str
    arrays: Mapping[str, Flat] = field(default_factory=dict)
    """Flat numbers, where possible views of what came."""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    size: float | None = None
    reason: str = ""
    """Why it is broken; empty for a sound one."""
    digest: str = ""
    """SHA-256 of the bytes of its arrays, one after the other in the order of the model's, where that is asked for."""


@dataclass(frozen=True)
class Replies:
    """The replies of a round."""

    given: tuple[Screened, ...]
    """Those that came with content, broken ones included: n of them."""
    failed: Mapping[str, str]
    """Clients that failed or did not answer, and what happened: they lower n."""
    unasked: tuple[str, ...] = ()
    """Clients that sent something and were not asked: it does not count."""

    @property
    def sound(self) -> list[Screened]:
        return [reply for reply in self.given if not reply.reason]


def screen(
    replies: Mapping[str, Any],
    model: Model | None,
    *,
    asked: Iterable[str] | None = None,
    needs_size: bool = False,
    digests: bool = False,
) -> Replies:
    """Sort the replies of those who were asked (None: of all); without a model only metrics are looked at.

    A reply is a `Reply`, or its arrays alone; a `Failure`, or an `UnfitError` by whoever received it.
    """
    wanted = replies.keys() if asked is None else dict.fromkeys(asked)
    given, failed = [], {}
    for client, reply in replies.items():
        if client not in wanted:
            continue
        if isinstance(reply, Failure):
            failed[client] = quote(reply.reason, LONGEST)
        else:
            given.append(_screen_one(client, reply, model, needs_size, digests))
    failed |= {client: "no reply" for client in wanted if client not in replies}
    unasked = tuple(client for client in replies if client not in wanted)
    return Replies(tuple(given), failed, unasked)


def find_fault(reply: Screened) -> str:
    """Why a reply is broken, also by NaN or Inf, which is otherwise left to the rule's own pass to find."""
    return reply.reason or ("" if all(map(_is_finite, reply.arrays.values())) else "not finite")


def _screen_one(client: str, reply: Any, model: Model | None, needs_size: bool, digests: bool) -> Screened:
    try:
        if isinstance(reply, UnfitError):
            raise reply
        if not isinstance(reply, Reply):
            reply = Reply(reply)
        if not isinstance(reply.metrics, Mapping):
            raise UnfitError(f"has metrics as {describe_kind(reply.metrics)} where a mapping is expected")
        if len(reply.metrics) > MOST_METRICS:
            raise UnfitError(f"has {len(reply.metrics)} metrics where at most {MOST_METRICS} are read")
        size = _read_size(reply.size, needs_size)
        metrics = dict(reply.metrics)  # read here, where what a mapping of a client's own raises ends nothing
        arrays = {} if model is None else _read_arrays(reply.arrays, model)
    except UnfitError as unfit:
        return Screened(client, reason=quote(unfit, LONGEST))
    except Exception as error:  # whatever a hostile reply can provoke must not end the run
        return Screened(client, reason=f"unreadable ({type(error).__name__}: {quote_end(error)})")
    return Screened(client, arrays, metrics, size, digest=_digest(arrays) if digests else "")


def _read_arrays(arrays: Any, model: Model) -> dict[str, Flat]:
    if not isinstance(arrays, Mapping):
        raise UnfitError(f"came as {describe_kind(arrays)} where a mapping of names to arrays is expected")
    missing = [name for name in model.specs if name not in arrays]
    unknown = sum(name not in model.arrays for name in arrays)
    extra = list(islice((name for name in arrays if name not in model.arrays), 1))  # there may be millions
    if missing or extra:
        faults = ([f"lacks {name_first(missing)}"] if missing else []) + (
            [f"has {name_first(extra, unknown)} too many"] if extra else []
        )
        came, expected = len(arrays), len(model.specs)
        raise UnfitError(f"{' and '.join(faults)}: {came} arrays came where {expected} are expected")
    flat = {name: model.read(spec, arrays[name]) for name, spec in model.specs.items()}
    # The measured arrays need no look: the rule's own pass raises the alarm. These do not go through that pass.
    for spec in model.statistics:
        if not _is_finite(flat[spec.name]):
            raise UnfitError(f"{spec.name!r} is not finite")
    return flat


def _read_size(claim: Any, needs_size: bool) -> float | None:
    if claim is None:
        if needs_size:
            raise UnfitError("does not say its size")
        return None
    try:
        size = math.nan if isinstance(claim, str | bytes | list) else float(claim)
    except OverflowError:
        size = math.inf
    if not 0 <= size < math.inf:
        raise UnfitError(f"claims {quote_end(claim)} as its size")
    return size


def _digest(arrays: Mapping[str, Flat]) -> str:
    digest = hashlib.sha256()
    for flat in arrays.values():
        numbers = flat if isinstance(flat, np.ndarray) else flat.cpu().contiguous().view(torch.uint8).numpy()
        digest.update(np.ascontiguousarray(numbers).data)
    return digest.hexdigest()


def _is_finite(flat: Flat) -> bool:
    return isinstance(flat, np.ndarray) or bool(torch.isfinite(flat).all())


def name_first(names: Sequence[Any], count: int | None = None) -> str:
    """The first of the names, and how many more there are of so many (None: of those given)."""
    count = len(names) if count is None else count
    more = f" and {count - 1} more" if count > 1 else ""
    return f"'{quote_end(names[0])}'{more}"
