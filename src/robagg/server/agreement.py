"""Which of the model's arrays the clients send: all, or a part, such as adapters, a head, or all but BatchNorm."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from robagg.server.arguments import check_flags
from robagg.server.model import Model
from robagg.server.screen import Failure, Reply, name_first


class Agreement:
    """What replies must hold.

    Args:
        partial: with True it is what most replies of a round hold, with None what those of the first round do, and with
            False always the whole model.
    """

    def __init__(self, partial: bool | None) -> None:
        if partial is not None:
            check_flags(partial=partial)
        self.partial = partial
        self.names: frozenset[str] | None = None
        """What the first round that was not skipped has settled; None before it."""

    def find(self, replies: Mapping[str, Any], model: Model) -> tuple[Model, str]:
        """The part of the model that counts in this round, and what to say in case the round is skipped."""
        names = find_part(replies, model)
        lacking = "" if names is None else name_first([name for name in model.specs if name not in names])
        open_ = self.partial or (self.partial is None and self.names is None)
        settled = names if open_ else self.names
        if settled is not None and settled < model.specs.keys():
            return model.part(settled), ""
        hint = f"; most replies lack {lacking}: do you send a part of the model? partial=True aggregates it"
        return model, hint if lacking and not open_ else ""

    def settle(self, part: Model, logger: logging.Logger) -> None:
        """Hold on to what a round with a value took: in one without a quorum, a few would decide for the run."""
        if self.partial is not None or self.names is not None:
            return
        self.names = frozenset(part.specs)
        if lacking := [name for name in part.arrays if name not in part.specs]:
            logger.warning("robagg: replies lack %s: what they hold is aggregated, the rest stays", name_first(lacking))


def find_part(replies: Mapping[str, Any], model: Model) -> frozenset[str] | None:
    """The names that more than half of the replies hold, where those are some of the model's arrays, not all."""
    held: Counter[frozenset[str]] = Counter()
    given = [reply for reply in replies.values() if not isinstance(reply, Failure)]
    for reply in given:
        arrays = reply.arrays if isinstance(reply, Reply) else reply
        with suppress(Exception):  # a mapping of a client's own may raise; screening says so of it
            # Lengths first: a reply of a million names costs nothing.
            if isinstance(arrays, Mapping) and len(arrays) < len(model.specs) and arrays.keys() <= model.specs.keys():
                held[frozenset(arrays)] += 1
    names, count = max(held.items(), key=lambda item: item[1], default=(frozenset[str](), 0))
    measured = any(spec.name in names for spec in model.measured)
    return names if measured and 2 * count > len(given) else None
