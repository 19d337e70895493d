"""An experiment of the paper without training: computed each time, in seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from robagg.paper.claims import Finding


@dataclass(frozen=True)
class Computed:
    """What a computation gave: a table, what it means, and the numbers of its picture."""

    head: tuple[str, ...]
    lines: list[list[str]]
    findings: list[Finding]
    picture: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Computation:
    """What is computed, from the number of random draws."""

    name: str
    title: str
    compute: Callable[[int], Computed]
    draws: int = 1
    quick_draws: int = 1
