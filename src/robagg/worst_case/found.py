"""What a search found: the worst stack, its ratio beside the bound, and both in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

GROWS = 5.0
"""A ratio that still grows by more than this with each of the last tenfold steps has no bound (the mean's: by 100)."""


@dataclass(frozen=True)
class Growth:
    """The ratio as one thing about the worst stack is carried on tenfold, again and again.

    Args:
        along: what is carried on.
        ratios: at 1, 10, 100, ... times.
    """

    along: str
    ratios: tuple[float, ...]

    @property
    def unbounded(self) -> bool:
        *_, a, b, c = self.ratios
        return c > 1 and c > GROWS * b and b > GROWS * a


@dataclass(frozen=True)
class WorstCase:
    """The worst stack that a search found for a rule, beside the bound that the paper gives.

    Its ratio is a lower bound of the worst one: the search proves nothing, and a worse stack may exist.

    Args:
        rule: its text.
        n: how many rows.
        f: how many of them are Byzantine.
        d: how long a row is.
        tau: "estimated" or "true"; "" for a rule without one.
        start: "median" or "far"; "own" for a rule that starts by itself.
        ratio: |R(X) - xbar|^2 over (1/h) sum over the honest |x_i - xbar|^2, by the rule's public call on `stack`.
        bound: the paper's kappa; None where it gives none.
        stack: (n, d) float64.
        honest: indices of the honest rows.
        value: (d,) what the rule makes of the stack.
        growth: how the ratio grows as the stack is carried on.
        evaluations: how many stacks were tried.
        seed: of the search.
        seconds: how long it took.
        steps: steps of the walk, where they were set by Theorem 3 for a far start.
        start_point: (d,) the far start.
    """

    rule: str
    n: int
    f: int
    d: int
    tau: str
    start: str
    ratio: float
    bound: float | None
    stack: Tensor
    honest: tuple[int, ...]
    value: Tensor
    growth: tuple[Growth, ...]
    evaluations: int
    seed: int
    seconds: float
    steps: int | None = None
    start_point: Tensor | None = None

    @property
    def unbounded(self) -> Growth | None:
        """What the ratio grows with beyond any kappa, if it does."""
        return next((growth for growth in self.growth if growth.unbounded), None)

    @property
    def broken(self) -> bool:
        """Whether the Byzantine rows alone, by going far, take the value as far as they like."""
        return self.growth[0].unbounded

    @property
    def share(self) -> float | None:
        """The found ratio as a share of the bound."""
        return None if self.bound is None else self.ratio / self.bound if self.bound else math.inf

    @property
    def verdict(self) -> str:
        """One sentence."""
        if self.broken:
            return f"broken: the ratio grows without bound with {self.growth[0].along}"
        if (growth := self.unbounded) is not None:
            return f"no kappa can hold: the ratio grows without bound with {growth.along}"
        if self.bound is None:
            return "no bound is known"
        if self.ratio <= self.bound * (1 + 1e-9):
            return "the worst found is within the bound"
        if self.start == "far":
            return "the worst found exceeds the bound: the bound does not cover this start"
        if self.tau == "estimated":
            return "the worst found exceeds the bound: the bound is for the true tau, not for this estimate of it"
        return "the worst found exceeds the bound"

    def describe(self) -> str:
        """What the stack looks like, in words; lengths in roots of the honest Var."""
        h = len(self.honest)
        mean, unit = self.stack[:h].mean(dim=0), _root_variance(self.stack[:h])
        x = (self.stack - mean) / unit
        parts = [f"honest: {_format_groups(x[:h])}", f"Byzantine: {_format_groups(x[h:])}"]
        if self.start_point is not None:
            reach = float((self.start_point - mean).norm() / unit)
            parts.append(f"start {reach:.3g} away, {self.steps} steps")
        gaps = (x[h:] - (self.value - mean) / unit).norm(dim=1)
        parts.append(f"value {math.sqrt(self.ratio):.3g} away, {_format_range(gaps)} from the Byzantine rows")
        return "; ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        fields = {name: value.tolist() if isinstance(value, Tensor) else value for name, value in vars(self).items()}
        growth = [{"along": growth.along, "ratios": growth.ratios} for growth in self.growth]
        words = {"verdict": self.verdict, "looks": self.describe()}
        return fields | words | {"share": self.share, "broken": self.broken, "growth": growth}


def _root_variance(honest: Tensor) -> Tensor:
    return (honest - honest.mean(dim=0)).square().sum().div(len(honest)).sqrt()


def _format_groups(x: Tensor) -> str:
    """Rows (k, d) about the honest mean, those within 0.05 of each other as one group: `5 rows 0.447 away, ...`."""
    near = torch.cdist(x, x) <= 0.05
    for _ in range(len(x)):  # neighbours of neighbours belong together
        near = (near.double() @ near.double()) > 0
    groups: dict[int, list[int]] = {}
    for i in range(len(x)):
        groups.setdefault(int(near[i].double().argmax()), []).append(i)
    parts = []
    ordered = sorted(groups.values(), key=len, reverse=True)
    for rows in ordered[:3]:
        away = float(x[rows].mean(dim=0).norm())
        parts.append(f"{len(rows)} {'row' if len(rows) == 1 else 'together'} {away:.3g} away")
    rest = [i for rows in ordered[3:] for i in rows]
    if rest:
        parts.append(f"{len(rest)} more {_format_range(x[rest].norm(dim=1))} away")
    return ", ".join(parts)


def _format_range(lengths: Tensor) -> str:
    low, high = f"{float(lengths.min()):.3g}", f"{float(lengths.max()):.3g}"
    return low if low == high else f"{low} to {high}"
