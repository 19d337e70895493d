"""What one client sent, as leaves: nests of dicts, lists and arrays taken apart, compared, and put together again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)

Path = tuple[Any, ...]


def list_leaves(row: Any) -> dict[Path, Any]:
    """The leaves of a row by their path."""
    found: dict[Path, Any] = {}
    try:
        _walk(row, (), found)
    except RecursionError:  # a nest without end has no leaves: it is a leaf of no use itself
        return {(): row}
    return found


def _walk(node: Any, path: Path, found: dict[Path, Any]) -> None:
    if isinstance(node, Tensor | np.ndarray):  # asked first: most nodes are leaves
        found[path] = node
    elif isinstance(node, Mapping):
        for key in node:
            _walk(node[key], (*path, key), found)
    elif isinstance(node, list | tuple):
        for i, child in enumerate(node):
            _walk(child, (*path, i), found)
    else:
        found[path] = node


def in_order(paths: Iterable[Path]) -> list[Path]:
    """The paths in an order that does not depend on that of the keys in some row."""
    return sorted(paths, key=lambda path: [(type(p).__name__, str(p)) for p in path])


def spell(path: Path) -> str:
    return "/".join(str(p) for p in path)


def fill(node: Any, path: Path, make: Callable[[Path, Any], Any]) -> Any:
    """The same nest with every leaf made anew."""
    if isinstance(node, Mapping):
        items = {key: fill(node[key], (*path, key), make) for key in node}
        return OrderedDict(items) if isinstance(node, OrderedDict) else items
    if isinstance(node, list | tuple):
        children = [fill(child, (*path, i), make) for i, child in enumerate(node)]
        if isinstance(node, list):
            return children
        return type(node)(*children) if hasattr(node, "_fields") else tuple(children)
    return make(path, node)


Form = frozenset[tuple[Path, tuple[Any, ...]]]
"""Each leaf's path and what is said of it."""


def describe_leaf(leaf: Any) -> tuple[Any, ...]:
    """What must agree between clients: library, dtype, shape, device."""
    if isinstance(leaf, Tensor):
        return ("tensor", leaf.dtype if leaf.layout == torch.strided else tell_dtype(leaf), leaf.shape, leaf.device)
    if isinstance(leaf, np.ndarray | np.generic) and not isinstance(leaf, np.ma.MaskedArray):
        return ("array", leaf.dtype if leaf.dtype.kind in "fiub" else str(leaf.dtype), leaf.shape)
    return (tell_kind(leaf),)


def tell_leaf(kind: str, dtype: Any = "", shape: Sequence[int] | None = None, device: Any = "") -> str:
    """What `describe_leaf` found, in words."""
    return " ".join(str(part) for part in (kind, dtype, "" if shape is None else tuple(shape), device) if part != "")


def check_form(form: Form, row: int, entry: dict[Path, Any]) -> None:
    """Most rows agree on this form: is it one we can take?"""
    where = f"row {row}"
    if not form:
        raise ValueError(f"{where} holds no tensor or array")
    floating, specs = False, dict(form)
    for path in in_order(specs):
        kind = specs[path][0]
        at = f"{where}, {spell(path)!r}" if path else where
        if kind not in ("tensor", "array"):
            raise TypeError(f"{at}: a tensor or an array is wanted, got {kind}")
        tensor = view(entry[path])
        if tensor is None or tensor.dtype not in (*FLOATS, *INTEGERS):
            raise TypeError(f"{at}: real numbers of a common dtype are wanted, got {tell_dtype(entry[path])}")
        floating |= tensor.dtype in FLOATS
    if not floating:
        raise TypeError(f"{where}: floating-point numbers are wanted, got only {specs[in_order(specs)[0]][1]}")
    devices = {str(spec[3]) if len(spec) > 3 else "cpu" for spec in specs.values()}
    if len(devices) > 1:
        raise ValueError(f"{where}: all tensors must be on one device, got {', '.join(sorted(devices))}")


def tell_difference(form: Form, wanted: Form) -> str:
    """In words, the first thing in which a row's structure is not that of most rows."""
    got, want = dict(form), dict(wanted)
    for path in in_order(want):
        name = repr(spell(path)) if path else "its vector"
        if path not in got:
            return f"lacks {name}"
        if got[path] != want[path]:
            return f"has {name} as {tell_leaf(*got[path])} where most have {tell_leaf(*want[path])}"
    extra = next(path for path in in_order(got) if path not in want)
    return f"has {spell(extra)!r}, which most rows lack"


def view(leaf: Any) -> Tensor | None:
    """A tensor over the same memory (None: no such dtype in torch). It is never written to."""
    if isinstance(leaf, Tensor):
        # A view may carry its sign as a flag (`z.conj().imag`), which readers of raw memory do not see.
        if leaf.layout != torch.strided:
            return None
        return (leaf.detach() if leaf.requires_grad else leaf).resolve_neg()
    if isinstance(leaf, np.ma.MaskedArray):
        raise TypeError("an array without a mask is wanted, such as x.filled(0.0), got MaskedArray")
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


def order_in_memory(leaf: Any) -> list[int] | None:
    """The order of dimensions in which a leaf lies in memory, so that flattening it copies nothing (channels-last).

    None is the usual one.
    """
    tensor = view(leaf)
    assert tensor is not None
    strides = tensor.stride()
    order = sorted(range(tensor.ndim), key=lambda k: (-strides[k], k))
    return None if order == list(range(tensor.ndim)) else order


def flatten_leaf(leaf: Any, order: list[int] | None) -> Tensor:
    """A leaf as a vector, its dimensions taken in this order."""
    tensor = leaf if isinstance(leaf, Tensor) else view(leaf)
    assert tensor is not None
    if order is not None:
        tensor = tensor.permute(order)
    return tensor if tensor.ndim == 1 else tensor.reshape(-1)


def shape_like(value: Tensor, leaf: Any, order: list[int] | None) -> Any:
    """A vector as a leaf again, whose dimensions it has in this order."""
    if order is None:
        value = value.reshape(leaf.shape)
    else:
        value = value.reshape([leaf.shape[k] for k in order]).permute([order.index(k) for k in range(len(order))])
    return value.to(leaf.dtype) if isinstance(leaf, Tensor) else value.numpy().astype(leaf.dtype, copy=False)


def read_point(point: Any, name: str, shape: Sequence[int], device: torch.device) -> Tensor:
    tensor = view(point) if isinstance(point, Tensor | np.ndarray | np.generic) else None
    where = f" in {name!r}" if name else ""
    if tensor is None or tuple(tensor.shape) != tuple(shape) or tensor.dtype not in FLOATS:
        got = tell_kind(point) if tensor is None else f"{tuple(tensor.shape)} of {tensor.dtype}"
        raise ValueError(f"the state must be shaped like a row, {tuple(shape)}{where}, got {got}")
    if tensor.device != device:
        raise ValueError(f"the state must be on {device} like the rows, got {tensor.device}{where}")
    return tensor


def tell_dtype(x: Any) -> str:
    dense = not isinstance(x, Tensor) or x.layout == torch.strided
    return str(x.dtype) if dense else f"{x.dtype} in {x.layout}"


def tell_kind(x: Any) -> str:
    return "None" if x is None else f"{type(x).__name__}"
