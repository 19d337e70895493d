"""The door: what clients sent, in whatever kind it came, as leaves of rows, and the result back in that kind.

Nothing is stacked here, and nothing large copied. A leaf of a state dict is the list of its n flat views; the small
ones are laid side by side, into one leaf of each dtype; an (n, d) tensor is one leaf as it is. A row whose structure is
not that of most rows is turned away with a reason; rows that are not finite are found later, by the alarm that the
passes raise (`Stack.broken_rows`), so that the happy path needs no extra pass.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from robagg import kernels
from robagg.kernels.reference import Rows
from robagg.nest import (
    FLOATS,
    Path,
    check_form,
    describe_leaf,
    fill,
    flatten_leaf,
    in_order,
    list_leaves,
    order_in_memory,
    read_point,
    shape_like,
    spell,
    tell_difference,
    tell_dtype,
    tell_kind,
    view,
)

# Squares of numbers within these bounds, summed over any number of coordinates, neither overflow nor vanish in float64.
LARGE, SMALL = 2.0**450, 2.0**-450
FAR = 2.0**480
SMALL_LEAF = 8192
"""Leaves of fewer numbers are copied side by side: to pass over each of them would take longer."""


@dataclass(frozen=True)
class Stack:
    """The rows that passed the door. `leaves` are the floating leaves, `counters` the integer ones."""

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

    @property
    def d(self) -> int:
        return sum(rows[0].shape[0] for rows in self.leaves)

    @property
    def device(self) -> torch.device:
        return self.leaves[0][0].device

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
        beyond 2^480 is drawn in to that, along its direction: a far outlier stays one. In float32 and below this
        changes nothing, because every square fits.
        """
        if all(rows[0].dtype != torch.float64 for rows in self.leaves):
            return self, 1.0
        sizes = [max(_largest(rows[k]) for rows in self.leaves) for k in range(len(self.kept))]
        middle = sorted(sizes)[(len(sizes) - 1) // 2] or max(sizes)
        exponent = 0 if SMALL < middle < LARGE or middle == 0 else max(-1000, min(1000, -math.frexp(middle)[1]))
        if exponent == 0 and max(sizes) < LARGE:
            return self, 1.0
        scales = [min(2.0**exponent, FAR / size) if size > 0 else 1.0 for size in sizes]
        leaves = [[rows[k].double() * scale for k, scale in enumerate(scales)] for rows in self.leaves]
        return replace(self, leaves=tuple(leaves)), 2.0**-exponent

    def lower_medians(self) -> list[Tensor]:
        """The integer leaves' values: each coordinate's lower median."""
        return [torch.stack(tuple(rows)).sort(dim=0).values[(len(rows) - 1) // 2] for rows in self.counters]


def read(x: Any) -> Stack:
    """Take an (n, d) tensor or array, a list of vectors, or a list of state dicts or other nests of arrays.

    >>> read(torch.zeros(3, 5)).d
    5
    >>> read([{"w": np.zeros((2, 2)), "b": np.zeros(2)}] * 3).d
    6
    """
    if isinstance(x, Tensor | np.ndarray):
        return _read_matrix(x)
    if not isinstance(x, Sequence) or isinstance(x, str | bytes):
        raise TypeError(f"rows come as a tensor, an array or a list with an entry a client, got {tell_kind(x)}")
    if not len(x):
        raise ValueError("rows from at least one client are wanted, got an empty list")
    return _read_list(x)


def _read_matrix(x: Tensor | np.ndarray[Any, Any]) -> Stack:
    if x.ndim != 2:
        raise ValueError(f"a stack has the shape (n, d), one row a client, got {tuple(x.shape)}")
    if not x.shape[0]:
        raise ValueError("rows from at least one client are wanted, got a stack of none")
    rows = view(x)
    if rows is None or rows.dtype not in FLOATS:
        raise TypeError(f"dense float16, bfloat16, float32 or float64 numbers are wanted, got {tell_dtype(x)}")

    def rebuild(values: Sequence[Tensor], counters: Sequence[Tensor]) -> Any:
        value = values[0].to(rows.dtype)
        return value if isinstance(x, Tensor) else value.numpy().astype(x.dtype, copy=False)

    def flatten(point: Any) -> list[Tensor]:
        return [read_point(point, "", rows.shape[1:], rows.device)]

    return Stack(rows.shape[0], (rows,), (), tuple(range(rows.shape[0])), {}, rebuild, flatten)


def _read_list(x: Sequence[Any]) -> Stack:
    entries = [list_leaves(row) for row in x]
    forms = [frozenset((path, describe_leaf(leaf)) for path, leaf in entry.items()) for entry in entries]
    form, count = Counter(forms).most_common(1)[0]
    first = forms.index(form)
    check_form(form, first, entries[first])
    kept = tuple(i for i, other in enumerate(forms) if other == form)
    if 2 * count <= len(x):
        other = next(i for i in range(len(x)) if i not in kept)
        raise ValueError(
            f"more than half of the rows must have one structure, got {count} of {len(x)}: "
            f"row {other} {tell_difference(forms[other], form)}"
        )
    reasons = {i: tell_difference(forms[i], form) for i in range(len(x)) if i not in kept}
    template, model, sound = x[first], entries[first], [entries[i] for i in kept]
    dtypes = {path: view(model[path]).dtype for path in in_order(model)}  # type: ignore[union-attr]
    groups = _group({path: dtype for path, dtype in dtypes.items() if dtype in FLOATS}, model)
    integers = [path for path, dtype in dtypes.items() if dtype not in FLOATS]
    orders = {path: order_in_memory(model[path]) for path in dtypes}
    leaves = tuple(_lay_out(sound, group, orders) for group in groups)
    device = leaves[0][0].device

    def rebuild(values: Sequence[Tensor], counters: Sequence[Tensor]) -> Any:
        result = dict(zip(integers, counters, strict=True))
        for group, value in zip(groups, values, strict=True):
            parts = torch.split(value, [math.prod(model[path].shape) for path in group])
            # Each in memory of its own: who changes or saves one must not touch the others.
            result |= zip(group, parts if len(parts) == 1 else [part.clone() for part in parts], strict=True)
        return fill(template, (), lambda path, leaf: shape_like(result[path], leaf, orders[path]))

    def flatten(point: Any) -> list[Tensor]:
        entry = list_leaves(point)
        parts = {p: read_point(entry.get(p), spell(p), model[p].shape, device) for p in dtypes if p not in integers}
        return [_lay_out([parts], group, orders)[0] for group in groups]

    return Stack(
        n=len(x),
        leaves=leaves,
        counters=tuple(_lay_out(sound, [path], orders) for path in integers),
        kept=kept,
        reasons=reasons,
        rebuild=rebuild,
        flatten=flatten,
    )


def _group(dtypes: dict[Path, torch.dtype], model: dict[Path, Any]) -> list[list[Path]]:
    """Which leaves become one: the small ones of a dtype."""
    groups: dict[Any, list[Path]] = {}
    for path, dtype in dtypes.items():
        groups.setdefault(dtype if math.prod(model[path].shape) < SMALL_LEAF else path, []).append(path)
    return list(groups.values())


def _lay_out(
    entries: Sequence[dict[Path, Any]], group: list[Path], orders: dict[Path, list[int] | None]
) -> list[Tensor]:
    """A vector from each row: its one leaf where it lies, or copies of several side by side."""
    if len(group) == 1:
        return [flatten_leaf(view(entry[group[0]]), orders[group[0]]) for entry in entries]
    pairs = [(path, orders[path]) for path in group]
    with torch.no_grad():
        return [torch.cat([flatten_leaf(entry[path], order) for path, order in pairs]) for entry in entries]


def _largest(row: Tensor) -> float:
    return float(row.abs().max()) if row.numel() else 0.0
