"""Pre-aggregators: what users write, chain, and call on rows of their own."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from robagg._core.aggregate import Request, aggregate
from robagg._core.outcome import Outcome
from robagg._core.passes import Passes
from robagg._core.stack import read
from robagg._core.stage import Mixing, Stage
from robagg._core.verdict import rebuild
from robagg.kernels.reference import mixed, tile, tiles


@dataclass(frozen=True)
class Mixer(Mixing):
    """A pre-aggregator: a matrix whose rows say which weighted sums of the rows go on."""

    def __call__(self, x: Any, *, generator: torch.Generator | None = None) -> Any:
        """The rows that go on: an (m, d) tensor or array from one, else a list of rows of the kind that came.

        In front of a rule they are never formed. A broken row is left out, and a warning says so.

        Args:
            x: an (n, d) tensor or array, a list of vectors, or a list of state dicts or other trees of arrays.
            generator: what is random takes its numbers here.
        """
        return form_rows((self,), x, generator)

    def __rshift__(self, other: Any) -> Any:
        return Chain((self,)) >> other if isinstance(other, Mixer | Chain) else NotImplemented


@dataclass(frozen=True)
class Chain:
    """Pre-aggregators in a row that wait for their rule, which takes them by its own `>>`."""

    mixers: tuple[Mixer, ...]

    def __call__(self, x: Any, *, generator: torch.Generator | None = None) -> Any:
        """The rows behind all of them, as of one."""
        return form_rows(self.mixers, x, generator)

    def __rshift__(self, other: Any) -> Any:
        if isinstance(other, Mixer):
            return Chain((*self.mixers, other))
        return Chain((*self.mixers, *other.mixers)) if isinstance(other, Chain) else NotImplemented

    def __str__(self) -> str:
        return " >> ".join(str(mixer) for mixer in self.mixers)


def form_rows(mixers: tuple[Mixer, ...], x: Any, generator: torch.Generator | None) -> Any:
    """The rows behind pre-aggregators, in the kind of the rows x."""
    chain = Rows(mixers)
    stack, outcome = aggregate(chain, read(x), Request(generator=generator))
    if stack.reasons:
        left = "; ".join(f"row {i}: {reason}" for i, reason in sorted(stack.reasons.items())[:3])
        warnings.warn(f"{chain} leaves out {len(stack.reasons)} broken rows ({left})", RuntimeWarning, stacklevel=3)
    count = len(outcome.values[0])
    rows = [rebuild(stack, replace(outcome, values=[value[k] for value in outcome.values])) for k in range(count)]
    if isinstance(x, Tensor):
        return torch.stack(rows)
    return np.stack(rows) if isinstance(x, np.ndarray) else rows


@dataclass(frozen=True)
class Rows(Stage):
    """In the place of a rule: all rows behind the pre-aggregators, as they are."""

    takes_weights: ClassVar[bool] = True
    tolerates: ClassVar[bool] = False
    mixers: tuple[Mixer, ...]

    @property
    def core(self) -> Rows:
        return self

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (*self.mixers, self)

    @property
    def least_n(self) -> int:
        return 1

    def solve(self, passes: Passes, f: int, shares: Tensor | None) -> Outcome:
        """Each value has the rows of a leaf, (m, d)."""
        assert passes.matrix is not None
        mix, values = passes.matrix[: passes.n, : passes.sent], []
        for rows in passes.leaves:
            compute = passes.compute(rows)
            columns = tiles(rows[0].shape[0], passes.device, passes.sent)
            parts = [mixed(mix, tile(rows, part, compute)) for part in columns]
            value = torch.cat([torch.zeros(passes.n, 0, dtype=compute, device=passes.device), *parts], dim=1)
            passes.raise_alarm(~torch.isfinite(value).all())
            values.append(value)
        return Outcome(values, None, passes.alarm)

    def __str__(self) -> str:
        return str(Chain(self.mixers))
