"""The door: what clients sent, in whatever kind it came, as leaves of rows, and the result back in that kind.

Nothing is stacked or copied here. A leaf of a state dict is the list of its n flat views; an (n, d) tensor is one leaf
as it is. A row whose structure is not that of most rows is turned away with a reason; rows that are not finite are
found later, by the alarm that the passes raise (`Stack.broken_rows`), so that the happy path needs no extra pass.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from robagg.kernels.reference import Rows

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
# Squares of numbers within these bounds, summed over any number of coordinates, neither overflow nor vanish in float64.
LARGE, SMALL = 2.0**450, 2.0**-450
FAR = 2.0**480


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
        return {
            row: "not finite"
            for k, row in enumerate(self.kept)
            if not all(bool(torch.isfinite(rows[k]).all()) for rows in self.leaves)
        }

    def tamed(self) -> tuple[Stack, float]:
        """The rows in a range whose squares float64 can hold, and the factor that takes a result back.

        All rows are scaled by one power of two so that the middle row is of ordinary size; a row that is then still
        beyond 2^480 is drawn in to that, along its direction: a far outlier stays one. In float32 and below this
        changes nothing, because every square fits.
        """
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
        raise TypeError(f"rows come as a tensor, an array or a list with an entry a client, got {_kind(x)}")
    if not len(x):
        raise ValueError("rows from at least one client are wanted, got an empty list")
    return _read_list(x)


def _read_matrix(x: Tensor | np.ndarray[Any, Any]) -> Stack:
    if x.ndim != 2:
        raise ValueError(f"a stack has the shape (n, d), one row a client, got {tuple(x.shape)}")
    if not x.shape[0]:
        raise ValueError("rows from at least one client are wanted, got a stack of none")
    rows = _tensor(x)
    if rows is None or rows.dtype not in FLOATS:
        raise TypeError(f"dense float16, bfloat16, float32 or float64 numbers are wanted, got {_dtype(x)}")

    def rebuild(values: Sequence[Tensor], counters: Sequence[Tensor]) -> Any:
        value = values[0].to(rows.dtype)
        return value if isinstance(x, Tensor) else value.numpy().astype(x.dtype, copy=False)

    def flatten(point: Any) -> list[Tensor]:
        return [_flat_point(point, "", rows.shape[1:])]

    return Stack(rows.shape[0], (rows,), (), tuple(range(rows.shape[0])), {}, rebuild, flatten)


def _read_list(x: Sequence[Any]) -> Stack:
    entries = [_entry(row) for row in x]
    forms = [tuple((path, _form(leaf)) for path, leaf in entry.items()) for entry in entries]
    form, count = Counter(forms).most_common(1)[0]
    first = forms.index(form)
    _check_form(form, first, entries[first])
    kept = tuple(i for i, other in enumerate(forms) if other == form)
    if 2 * count <= len(x):
        other = next(i for i in range(len(x)) if i not in kept)
        raise ValueError(
            f"more than half of the rows must have one structure, got {count} of {len(x)}: "
            f"row {other} {_difference(forms[other], form)}"
        )
    reasons = {i: _difference(forms[i], form) for i in range(len(x)) if i not in kept}
    template, paths = x[first], list(entries[first])
    orders = {path: _memory_order(entries[first][path]) for path in paths}
    flat = {
        path: [_tensor(entries[i][path]).permute(orders[path]).reshape(-1) for i in kept]  # type: ignore[union-attr]
        for path in paths
    }
    floats = [path for path in paths if flat[path][0].dtype in FLOATS]
    integers = [path for path in paths if path not in floats]

    def rebuild(values: Sequence[Tensor], counters: Sequence[Tensor]) -> Any:
        result = dict(zip((*floats, *integers), (*values, *counters), strict=True))
        return _fill(template, (), lambda path, leaf: _shape_like(result[path], leaf, orders[path]))

    def flatten(point: Any) -> list[Tensor]:
        entry = _entry(point)
        return [
            _flat_point(entry.get(p), _spell(p), entries[first][p].shape).permute(orders[p]).reshape(-1) for p in floats
        ]

    leaves, counters = ([flat[p] for p in part] for part in (floats, integers))
    return Stack(len(x), tuple(leaves), tuple(counters), kept, reasons, rebuild, flatten)


Path = tuple[Any, ...]


def _entry(row: Any) -> dict[Path, Any]:
    """The leaves of a row by their path, in an order that does not depend on that of its keys."""
    try:
        found = dict(_leaves(row))
    except RecursionError:  # a nest without end has no leaves: it is a leaf of no use itself
        return {(): row}
    return {path: found[path] for path in sorted(found, key=lambda path: [(type(p).__name__, str(p)) for p in path])}


def _leaves(node: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(node, Mapping):
        for key in node:
            yield from _leaves(node[key], (*path, key))
    elif isinstance(node, list | tuple):
        for i, child in enumerate(node):
            yield from _leaves(child, (*path, i))
    else:
        yield path, node


def _spell(path: Path) -> str:
    return "/".join(str(p) for p in path)


def _fill(node: Any, path: Path, make: Callable[[Path, Any], Any]) -> Any:
    """The same nest with every leaf made anew."""
    if isinstance(node, Mapping):
        items = {key: _fill(node[key], (*path, key), make) for key in node}
        return OrderedDict(items) if isinstance(node, OrderedDict) else items
    if isinstance(node, list | tuple):
        children = [_fill(child, (*path, i), make) for i, child in enumerate(node)]
        if isinstance(node, list):
            return children
        return type(node)(*children) if hasattr(node, "_fields") else tuple(children)
    return make(path, node)


Form = tuple[tuple[Path, tuple[str, ...]], ...]


def _form(leaf: Any) -> tuple[str, ...]:
    """What must agree between clients: library, dtype, shape, device."""
    if isinstance(leaf, Tensor):
        return ("tensor", _dtype(leaf), str(tuple(leaf.shape)), str(leaf.device))
    if isinstance(leaf, np.ndarray | np.generic):
        return ("array", str(leaf.dtype), str(leaf.shape))
    return (_kind(leaf),)


def _check_form(form: Form, row: int, entry: dict[Path, Any]) -> None:
    """Most rows agree on this form: is it one we can take?"""
    where = f"row {row}"
    if not form:
        raise ValueError(f"{where} holds no tensor or array")
    floating = False
    for path, (kind, *_) in form:
        at = f"{where}, {_spell(path)!r}" if path else where
        if kind not in ("tensor", "array"):
            raise TypeError(f"{at}: a tensor or an array is wanted, got {kind}")
        tensor = _tensor(entry[path])
        if tensor is None or tensor.dtype not in (*FLOATS, *INTEGERS):
            raise TypeError(f"{at}: real numbers of a common dtype are wanted, got {_dtype(entry[path])}")
        floating |= tensor.dtype in FLOATS
    if not floating:
        raise TypeError(f"{where}: floating-point numbers are wanted, got only {form[0][1][1]}")
    devices = {spec[3] for _, spec in form if len(spec) > 3}
    if len(devices) > 1:
        raise ValueError(f"{where}: all tensors must be on one device, got {', '.join(sorted(devices))}")


def _difference(form: Form, wanted: Form) -> str:
    """In words, the first thing in which a row's structure is not that of most rows."""
    got, want = dict(form), dict(wanted)
    for path in want:
        name = repr(_spell(path)) if path else "its vector"
        if path not in got:
            return f"lacks {name}"
        if got[path] != want[path]:
            return f"has {name} as {' '.join(got[path])} where most have {' '.join(want[path])}"
    extra = next(path for path in got if path not in want)
    return f"has {_spell(extra)!r}, which most rows lack"


def _tensor(leaf: Any) -> Tensor | None:
    """A tensor over the same memory (None: no such dtype in torch). It is never written to."""
    if isinstance(leaf, Tensor):
        # A view may carry its sign as a flag (`z.conj().imag`), which readers of raw memory do not see.
        return leaf.detach().resolve_neg() if leaf.layout == torch.strided else None
    array = np.asarray(leaf)
    size = array.dtype.itemsize
    if array.dtype.kind not in "fiub" or size > 8 or (array.dtype.kind == "u" and size > 1):
        return None
    odd = not array.flags.aligned or any(stride < 0 or stride % size for stride in array.strides)
    if odd or not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.writeable and array.size:
        array = np.asarray(_Writable(array))
    return torch.from_numpy(array)


class _Writable:
    """Presents read-only memory (as received messages are) as writable, because torch warns about it otherwise."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        interface = array.__array_interface__
        self.array = array
        self.__array_interface__ = interface | {"data": (interface["data"][0], False)}


def _memory_order(leaf: Any) -> list[int]:
    """The order of dimensions in which a leaf lies in memory, so that flattening it copies nothing (channels-last)."""
    tensor = _tensor(leaf)
    assert tensor is not None
    strides = tensor.stride()
    return sorted(range(tensor.ndim), key=lambda k: (-strides[k], k))


def _shape_like(value: Tensor, leaf: Any, order: list[int]) -> Any:
    shape = [leaf.shape[k] for k in order]
    back = [order.index(k) for k in range(len(order))]
    if isinstance(leaf, Tensor):
        return value.to(leaf.dtype).reshape(shape).permute(back)
    return value.reshape(shape).permute(back).numpy().astype(leaf.dtype, copy=False)


def _flat_point(point: Any, name: str, shape: Sequence[int]) -> Tensor:
    tensor = _tensor(point) if isinstance(point, Tensor | np.ndarray | np.generic) else None
    if tensor is None or tuple(tensor.shape) != tuple(shape) or tensor.dtype not in FLOATS:
        got = _kind(point) if tensor is None else f"{tuple(tensor.shape)} of {tensor.dtype}"
        where = f" in {name!r}" if name else ""
        raise ValueError(f"the state must be shaped like a row, {tuple(shape)}{where}, got {got}")
    return tensor


def _dtype(x: Any) -> str:
    dense = not isinstance(x, Tensor) or x.layout == torch.strided
    return str(x.dtype) if dense else f"{x.dtype} in {x.layout}"


def _largest(row: Tensor) -> float:
    return float(row.abs().max()) if row.numel() else 0.0


def _kind(x: Any) -> str:
    return "None" if x is None else f"{type(x).__name__}"
