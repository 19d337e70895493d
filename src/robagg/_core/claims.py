"""Client weights as they are given: what n clients claim to count, read with care, and the limit on each of them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from robagg._core.checks import is_number
from robagg._core.leaf import describe_kind
from robagg._core.stage import Solver
from robagg._core.tolerance import F
from robagg._core.votes import Votes, deal, find_limit

NO_CHANGE = "client weights change nothing"
"""How the warning begins."""


@dataclass(frozen=True)
class Claims:
    """What each of n clients claims."""

    sizes: tuple[float, ...]
    """0 for a claim that is no size."""
    odd: dict[int, str]
    """The claims that are no sizes, and why."""
    limit: float
    """The largest share of all that one may get."""

    def leave_out(self) -> bool:
        """Whether a client gets no vote at all."""
        return 0 in deal(self.sizes, self.limit)

    def deal(self, kept: Sequence[int]) -> Votes | None:
        """The votes of the rows that are left; None where all have as many."""
        votes = deal([self.sizes[i] for i in kept], self.limit) if kept else (0,)
        if min(votes) == max(votes):
            return None
        return Votes(votes if len(kept) == len(self.sizes) else deal(self.sizes, self.limit), votes)


def read_claims(rule: Solver, weights: Any, max_weight: Any, n: int) -> Claims | None:
    """What n clients claim; None where nobody weighs them."""
    if weights is None:
        if max_weight is not None:
            raise ValueError(f"max_weight must come with weights, which it limits, got max_weight={max_weight!r} alone")
        return None
    check_takes_weights(rule)
    try:  # text and dicts can be iterated over too, but hold no numbers
        claims = None if isinstance(weights, str | bytes | Mapping) else list(weights)
    except TypeError:
        claims = None
    if claims is None:
        raise TypeError(f"weights must be {n} numbers, one per row, got {describe_kind(weights)}")
    if len(claims) != n:
        raise ValueError(f"weights must be one per row, got {len(claims)} weights for {n} rows")
    sizes = [_read_size(claim) for claim in claims]
    odd = {
        i: f"weight {describe_kind(claims[i]) if size is None else size} is no size"
        for i, size in enumerate(sizes)
        if size is None or not 0 <= size < math.inf
    }
    sound = tuple(0.0 if size is None or i in odd else size for i, size in enumerate(sizes))
    limit = _read_limit(rule, max_weight, n)
    if limit * n <= 1 and len(set(sound)) > 1:
        warnings.warn(
            f"{NO_CHANGE}: max_weight={limit:g} leaves each of {n} clients an equal share, and must "
            f"be above {1 / n:.4g} to leave more",
            RuntimeWarning,
            stacklevel=4,
        )
    return Claims(sound, odd, limit)


def _read_limit(rule: Solver, max_weight: Any, n: int) -> float:
    """The largest share of all that a claim can give one of n clients, so that f of them do not get half."""
    if max_weight is None:
        return find_limit(_count_clients(rule, n), n, getattr(rule.core, "max_weight", None))
    return check_max_weight(rule, max_weight)


def _count_clients(rule: Solver, n: int) -> list[F]:
    """The f of each stage that tolerates, in clients: behind Bucketing f rows stand for several each.

    Where claims could give half of all to so many, they would lower the f in force.
    """
    asked: list[F] = []
    joined = 1
    for stage in rule.stages:
        if stage.tolerates and joined == 1:
            asked.append(stage.f_asked)
        elif stage.tolerates and stage.f_asked != 0:
            f = 1 if stage.f_asked is None else stage.resolve_f(n)
            asked.append(joined * min(f, (-(-n // joined) - 1) // 2))
        joined *= getattr(stage, "joins", 1)
    return asked


def check_max_weight(rule: Solver, max_weight: Any) -> float:
    """Refuse what is no share, or would let f clients claim half of all."""
    if not is_number(max_weight) or not 0 < max_weight < math.inf:
        raise ValueError(f"max_weight must be a share > 0 of all client weights, got {max_weight!r}")
    for stage in rule.stages:
        if stage.tolerates and isinstance(stage.f_asked, int) and 2 * stage.f_asked * max_weight >= 1:
            most = 1 / (2 * stage.f_asked)
            raise ValueError(
                f"max_weight must be below {most:.4g} for {stage}, or f clients may claim half of all; "
                f"got {max_weight!r}"
            )
    return float(max_weight)


def check_takes_weights(rule: Solver) -> None:
    """Refuse a chain of which a part counts every client alike."""
    blind = next((stage for stage in rule.stages if not stage.takes_weights), None)
    if blind is not None:
        raise ValueError(
            f"{blind} must count clients by their votes to take weights: its class says so by takes_weights = True"
        )


def _read_size(claim: Any) -> float | None:
    """What a client claims; None where it is no number."""
    try:
        return float(claim)
    except OverflowError:  # 10**400 is what a client said, and no size
        return math.inf
    except (Exception, SystemExit):  # whatever it is, it must not end the round
        return None
