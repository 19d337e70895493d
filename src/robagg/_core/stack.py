"""Input: what clients sent, in whatever kind it came, as leaves of rows, and the result back in that kind.

Nothing is stacked here, and nothing large copied. A leaf of a state dict is the list of its n flat views; the small
ones are laid side by side, into one leaf of each dtype; an (n, d) tensor is one leaf as it is. A row whose structure is
not that of most rows is rejected with a reason; rows that are not finite are found later, by the alarm that the
passes raise (`Stack.broken_rows`), so that sound rows cost no extra pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from robagg import kernels
from robagg._core.leaf import (
    FLOATS,
    LeafSpec,
    Order,
    describe_dtype,
    describe_kind,
    find_largest,
    find_order,
    flatten_leaf,
    read_point,
    shape_like,
    view,
)
from robagg._core.passes import Passes
from robagg._core.pytree import Path, agree, describe_path, fill, in_order, read_rows, walk
from robagg.kernels.types import Rows

# Squares of numbers within these bounds, summed over any number of coordinates, neither overflow nor vanish in float64.
LARGE, SMALL = 2.0**450, 2.0**-450
FAR = 2.0**480
SMALL_LEAF = 8192
"""Leaves of fewer numbers are copied side by side: to pass over each of them would take longer."""


@dataclass(frozen=True)
class Stack:
    """The rows that could be read. `leaves` are the floating leaves, `counters` the integer ones."""

    n: int
    """How many rows were given."""
    leaves: tuple[Rows, ...]
    counters: tuple[Rows, ...]
    kept: tuple[int, ...]
    """Which of the given rows the leaves hold, in order."""
    reasons: dict[int, str]
    """Why each of the other rows is broken."""
    rebuild: Callable[[Sequence[Tensor], Sequence[Tensor]], Any]
    """Values of the leaves and of the counters -> the result in the kind that was given."""
    flatten: Callable[[Any], list[Tensor]]
    """One more point in the structure of the rows -> its vectors, in the order of the leaves."""
    paths: tuple[Sequence[Path], ...] = ()
    """The leaves of a row that is a tree, by the vector in which they lie."""

    @property
    def device(self) -> torch.device:
        return self.leaves[0][0].device

    def open_passes(self, anchors: dict[str, Sequence[Tensor] | None], **options: Any) -> Passes:
        """The passes over these rows; a stack whose rows lie elsewhere makes its own kind."""
        return Passes(self.leaves, anchors, **options)

    def among(self, broken: Mapping[int, str]) -> Stack:
        """The same rows as the sound ones among more: those that are broken, by their place among all, and why."""
        if not broken:
            return self
        n = self.n + len(broken)
        sound = [i for i in range(n) if i not in broken]
        if len(sound) != self.n:
            raise ValueError(f"broken rows must be named by their place among all {n}, got {sorted(broken)}")
        return replace(
            self,
            n=n,
            kept=tuple(sound[i] for i in self.kept),
            reasons={**broken, **{sound[i]: reason for i, reason in self.reasons.items()}},
        )

    def without(self, reasons: dict[int, str]) -> Stack:
        """The stack less some rows, named by their given index."""
        stay = [k for k, row in enumerate(self.kept) if row not in reasons]
        if not stay:
            return replace(self, kept=(), reasons=self.reasons | reasons)
        pick = [[rows[k] for k in stay] for rows in (*self.leaves, *self.counters)]
        return replace(
            self,
            leaves=tuple(pick[: len(self.leaves)]),
            counters=tuple(pick[len(self.leaves) :]),
            kept=tuple(self.kept[k] for k in stay),
            reasons=self.reasons | reasons,
        )

    def broken_rows(self) -> dict[int, str]:
        """The rows that hold NaN or Inf."""
        # A sum of squares is not finite if a number is not. Of float64 that may be overflow, so those are looked at.
        squares = torch.stack([kernels.measure(rows, None) for rows in self.leaves]).sum(dim=0).tolist()
        return {
            row: "not finite"
            for k, row in enumerate(self.kept)
            if not squares[k] < math.inf and not all(bool(torch.isfinite(rows[k]).all()) for rows in self.leaves)
        }

    def tamed(self) -> tuple[Stack, float]:
        """The rows in a range whose squares float64 can hold, and the factor that takes a result back.

        All rows are scaled by one power of two so that the middle row is of ordinary size; a row that is then still
        beyond 2^480 is scaled down to that: a far outlier stays one. In float32 every square fits.
        """
        if (sizes := self.find_sizes()) is None:
            return self, 1.0
        middle = sorted(sizes)[(len(sizes) - 1) // 2] or max(sizes)
        exponent = 0 if SMALL < middle < LARGE or middle == 0 else max(-1000, min(1000, -math.frexp(middle)[1]))
        if exponent == 0 and max(sizes) < LARGE:
            return self, 1.0
        scales = [min(2.0**exponent, FAR / size) if size > 0 else 1.0 for size in sizes]
        # Only what is scaled is copied: one client's huge number must not make a copy of everybody's model.
        leaves = [
            [rows[k] if scale == 1.0 else rows[k].double() * scale for k, scale in enumerate(scales)]
            for rows in self.leaves
        ]
        return replace(self, leaves=tuple(leaves)), 2.0**-exponent

    def find_sizes(self) -> list[float] | None:
        """The largest number of each row; None where every square fits float64."""
        wide = any(rows[0].dtype == torch.float64 for rows in self.leaves)
        return [max(find_largest(rows[k]) for rows in self.leaves) for k in range(len(self.kept))] if wide else None

    def lower_medians(self) -> list[Tensor]:
        """The integer leaves' values: each coordinate's lower median."""
        return [torch.stack(tuple(rows)).sort(dim=0).values[(len(rows) - 1) // 2] for rows in self.counters]


def read(x: Any, *, broken: Mapping[int, str] = MappingProxyType({}), apart: Container[Path] = ()) -> Stack:
    """Take an (n, d) tensor or array, a list of vectors, or a list of state dicts or other trees of arrays.

    Who knows already that some rows are `broken` gives the others alone, in order, and says which are missing and why:
    the contract counts them as it counts those that it finds itself. Leaves `apart` never lie beside others.

    >>> [tuple(rows.shape) for rows in read(torch.zeros(3, 5)).leaves]
    [(3, 5)]
    >>> read([np.zeros(2), np.zeros(3), np.zeros(2)]).reasons
    {1: 'has its vector as array float64 (3,) where most have array float64 (2,)'}
    >>> read([np.zeros(2), np.zeros(2)], broken={1: "came too late"}).kept
    (0, 2)
    """
    stack = _read(x, apart)
    if stack.device.type == "meta":
        raise TypeError("rows must be on a device that holds numbers, got the meta device")
    return stack.among(broken)


def _read(x: Any, apart: Container[Path]) -> Stack:
    if isinstance(x, Tensor | np.ndarray):
        return _read_matrix(x)
    if not isinstance(x, Sequence) or isinstance(x, str | bytes):
        raise TypeError(
            f"x must be an (n, d) tensor or array, or a list with one entry per client, got {describe_kind(x)}"
        )
    if not len(x):
        raise ValueError("x must hold the row of at least one client, got an empty list")
    return _read_list(x, apart)


def _read_matrix(x: Tensor | np.ndarray[Any, Any]) -> Stack:
    if x.ndim != 2:
        raise ValueError(f"a stack must have the shape (n, d), one row per client, got {tuple(x.shape)}")
    if not x.shape[0]:
        raise ValueError("x must hold the row of at least one client, got a stack of none")
    rows = view(x)
    if rows is None or rows.dtype not in FLOATS:
        raise TypeError(f"rows must be dense float16, bfloat16, float32 or float64 numbers, got {describe_dtype(x)}")

    def rebuild(values: Sequence[Tensor], counters: Sequence[Tensor]) -> Any:
        value = values[0].to(rows.dtype)
        return value if isinstance(x, Tensor) else value.numpy().astype(x.dtype, copy=False)

    def flatten(point: Any) -> list[Tensor]:
        return [read_point(point, "", rows.shape[1:], rows.device)]

    return Stack(rows.shape[0], (rows,), (), tuple(range(rows.shape[0])), {}, rebuild, flatten)


def _read_list(x: Sequence[Any], apart: Container[Path]) -> Stack:
    entries = read_rows(x)
    first, reasons = agree(entries)
    kept = tuple(i for i in range(len(x)) if i not in reasons)
    model, sound = entries[first].leaves, [entries[i].leaves for i in kept]
    specs = {path: spec for path, spec in entries[first].signature if isinstance(spec, LeafSpec)}
    paths = in_order(model)
    groups = _group({path: model[path] for path in paths if model[path].dtype in FLOATS}, apart)
    integers = [path for path in paths if model[path].dtype not in FLOATS]
    orders = {path: find_order([leaves[path] for leaves in sound]) for path in paths}
    leaves = tuple(_lay_out(sound, group, orders) for group in groups)
    device = leaves[0][0].device

    def rebuild(values: Sequence[Tensor], counters: Sequence[Tensor]) -> Any:
        result = dict(zip(integers, counters, strict=True))
        for group, value in zip(groups, values, strict=True):
            parts = torch.split(value, [model[path].numel() for path in group])
            # Each in memory of its own: who changes or saves one must not touch the others.
            result |= zip(group, parts if len(parts) == 1 else [part.clone() for part in parts], strict=True)
        return fill(x[first], (), lambda path: shape_like(result[path], specs[path], orders[path]))

    def flatten(point: Any) -> list[Tensor]:
        nodes = {path: node for path, node, _ in walk(point)}
        parts = {
            path: read_point(nodes.get(path), describe_path(path) if path else "", model[path].shape, device)
            for path in chain(*groups)
        }
        return [_lay_out([parts], group, orders)[0] for group in groups]

    return Stack(
        n=len(x),
        leaves=leaves,
        counters=tuple(_lay_out(sound, [path], orders) for path in integers),
        kept=kept,
        reasons=reasons,
        rebuild=rebuild,
        flatten=flatten,
        paths=tuple(groups),
    )


def _group(leaves: dict[Path, Tensor], apart: Container[Path]) -> list[list[Path]]:
    """Which leaves become one: the small ones of a dtype, those apart by themselves."""
    groups: dict[Any, list[Path]] = {}
    for path, leaf in leaves.items():
        groups.setdefault((leaf.dtype, path in apart) if leaf.numel() < SMALL_LEAF else path, []).append(path)
    return list(groups.values())


def _lay_out(rows: Sequence[Mapping[Path, Tensor]], group: list[Path], orders: dict[Path, Order]) -> list[Tensor]:
    """A vector from each row: its one leaf where it lies, or copies of several side by side."""
    if len(group) == 1:
        return [flatten_leaf(leaves[group[0]], orders[group[0]]) for leaves in rows]
    pairs = [(path, orders[path]) for path in group]
    return [torch.cat([flatten_leaf(leaves[path], order) for path, order in pairs]) for leaves in rows]
