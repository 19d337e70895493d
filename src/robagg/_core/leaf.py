"""One leaf of what a client sent, a tensor or an array: viewed as a tensor, described, flattened, shaped again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
NUMBERS = frozenset((*FLOATS, *INTEGERS))
ARRAYS = (Tensor, np.ndarray, np.generic)
LAZY = (UninitializedParameter, UninitializedBuffer)

Order = tuple[int, ...]
"""In which order a leaf's dimensions lie in memory; () is the usual one."""


class LeafSpec(NamedTuple):
    """What must agree between clients about a leaf."""

    library: str
    """"tensor" or "array"."""
    dtype: Any
    shape: tuple[int, ...]
    device: torch.device | None = None
    """Of a tensor."""

    def __str__(self) -> str:
        words = (self.library, self.dtype, tuple(self.shape), "" if self.device is None else self.device)
        return cut(" ".join(map(str, words)).rstrip())


class UnusableError(TypeError):
    """A leaf that no row may have. Its message ends the sentence `row 3 has 'w' ...`."""


def read_leaf(leaf: Any) -> tuple[LeafSpec, Tensor]:
    """The leaf's spec and a plain tensor view of it."""
    if isinstance(leaf, Tensor):  # asked first: most leaves are
        tensor = _view_tensor(leaf)
        if tensor is not None and tensor.dtype in NUMBERS:
            if not _has_memory(tensor):
                raise UnusableError("without the memory that its shape needs")
            return LeafSpec("tensor", tensor.dtype, tensor.shape, tensor.device), tensor
    elif not isinstance(leaf, ARRAYS):
        raise UnusableError(f"as {describe_kind(leaf)} where a tensor or an array must be")
    elif isinstance(leaf, np.ma.MaskedArray):
        raise UnusableError(f"as {describe_kind(leaf)} where an array without a mask must be, such as x.filled(0.0)")
    else:
        tensor = _view_array(leaf)
        if tensor is not None:
            return LeafSpec("array", np.asarray(leaf).dtype, tensor.shape), tensor
    raise UnusableError(f"as {describe_dtype(leaf)} where dense real numbers of a common dtype must be")


def view(leaf: Any) -> Tensor | None:
    """A tensor over the same memory (None: no such dtype in torch). It is never written to."""
    if isinstance(leaf, Tensor):
        return _view_tensor(leaf)
    if isinstance(leaf, np.ma.MaskedArray):
        raise TypeError("an array must have no mask, as x.filled(0.0) has none, got MaskedArray")
    return _view_array(leaf)


def _view_tensor(leaf: Tensor) -> Tensor | None:
    plain = leaf
    if type(leaf) is Parameter:
        plain = Tensor.detach(leaf)
    elif type(leaf) is not Tensor or leaf.__dict__:  # what a client set on it hides a tensor's own methods
        plain = _strip(leaf)
    if plain.layout != torch.strided:
        return None
    if plain.requires_grad:
        plain = plain.detach()
    # A view may carry its sign as a flag (`z.conj().imag`), which readers of raw memory do not see.
    if plain.is_neg():
        _refuse_copy(plain.nbytes, plain.untyped_storage().nbytes())
        plain = plain.resolve_neg()
    return plain


def _strip(leaf: Tensor) -> Tensor:
    """The tensor without its class and attributes: a class of the client's own may answer anything."""
    if isinstance(leaf, LAZY):
        raise UnusableError("as a parameter that has no shape yet")
    with torch._C.DisableTorchFunctionSubclass(), torch._C._DisableTorchDispatch():
        plain = Tensor.as_subclass(leaf, Tensor)
    if type(plain) is not Tensor or torch._C._dispatch_keys(plain).has(torch._C.DispatchKey.Python):
        raise UnusableError(f"as {describe_kind(leaf)} where a plain tensor must be")
    return plain


def _view_array(leaf: Any) -> Tensor | None:
    array = np.asarray(leaf)
    size = array.dtype.itemsize
    if array.dtype.kind not in "fiub" or size > 8 or (array.dtype.kind == "u" and size > 1):
        return None
    odd = not array.flags.aligned or any(stride < 0 or stride % size for stride in array.strides)
    if odd or not array.dtype.isnative:
        reach = sum((count - 1) * abs(stride) for count, stride in zip(array.shape, array.strides, strict=True))
        _refuse_copy(array.nbytes, reach + size)
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.writeable and array.size:
        array = np.asarray(_Writable(array))
    return torch.from_numpy(array)


def _refuse_copy(needed: int, there: int) -> None:
    """A few bytes, seen as many, are not copied: before rows are compared anybody could ask for any amount."""
    if needed > there:
        raise UnusableError(f"as a view of {there} bytes that would have to be copied into {needed}")


class _Writable:
    """Presents read-only memory (as received messages are) as writable, because torch warns about it otherwise."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        interface = array.__array_interface__
        self.array = array
        self.__array_interface__ = interface | {"data": (interface["data"][0], False)}


def _has_memory(tensor: Tensor) -> bool:
    """Whether all its numbers lie in memory: a storage may have been freed or shrunk, and some tensors have none."""
    needed = tensor.nbytes
    if not needed:
        return True
    if not tensor.is_contiguous():
        needed = _find_reach(tensor.shape, tensor.stride()) * tensor.itemsize
    there = tensor.untyped_storage().nbytes() - tensor.storage_offset() * tensor.itemsize
    elsewhere = not (tensor.is_cpu or tensor.is_cuda)  # other devices, such as meta, have no addresses to look at
    return needed <= there and (elsewhere or tensor.data_ptr() != 0)


@lru_cache(maxsize=1024)
def _find_reach(shape: torch.Size, strides: tuple[int, ...]) -> int:
    """How many numbers lie between the first and the last, with both."""
    return 1 + sum((count - 1) * stride for count, stride in zip(shape, strides, strict=True))


def order_in_memory(tensor: Tensor) -> Order:
    """The order in which flattening copies nothing (channels-last)."""
    return () if tensor.ndim < 2 or tensor.is_contiguous() else _order(tensor.stride())


@lru_cache(maxsize=1024)
def _order(strides: tuple[int, ...]) -> Order:
    order = tuple(sorted(range(len(strides)), key=lambda k: (-strides[k], k)))
    return () if order == tuple(range(len(strides))) else order


def find_order(leaves: Sequence[Tensor]) -> Order:
    """The order in memory that most rows have this leaf in: one client must not make the others be copied."""
    counts = Counter(map(order_in_memory, leaves))
    return min(counts, key=lambda order: (-counts[order], order))


def find_largest(row: Tensor) -> float:
    return float(row.abs().max()) if row.numel() else 0.0


def flatten_leaf(tensor: Tensor, order: Order) -> Tensor:
    """A leaf as a vector, its dimensions taken in this order."""
    if order:
        tensor = tensor.permute(order)
    return tensor if tensor.ndim == 1 else tensor.reshape(-1)


def shape_like(value: Tensor, spec: LeafSpec, order: Order) -> Any:
    """A vector as a leaf again, whose dimensions it has in this order."""
    if order:
        value = value.reshape([spec.shape[k] for k in order]).permute([order.index(k) for k in range(len(order))])
    else:
        value = value.reshape(spec.shape)
    return value.to(spec.dtype) if spec.library == "tensor" else value.numpy().astype(spec.dtype, copy=False)


def read_point(point: Any, name: str, shape: Sequence[int], device: torch.device) -> Tensor:
    """A leaf of a rule's state, shaped like that of a row."""
    tensor = view(point) if isinstance(point, ARRAYS) else None
    where = f" in {name}" if name else ""
    if tensor is None or tuple(tensor.shape) != tuple(shape) or tensor.dtype not in FLOATS:
        got = describe_kind(point) if tensor is None else f"{tuple(tensor.shape)} of {tensor.dtype}"
        raise ValueError(f"the state must be shaped like a row, {tuple(shape)}{where}, got {got}")
    if tensor.device != device:
        raise ValueError(f"the state must be on {device} like the rows, got {tensor.device}{where}")
    return tensor


def describe_dtype(x: Any) -> str:
    dense = not isinstance(x, Tensor) or x.layout == torch.strided
    return cut(str(x.dtype) if dense else f"{x.dtype} in {x.layout}")


def describe_kind(x: Any) -> str:
    return "None" if x is None else cut(type(x).__name__)


def cut(text: str, most: int = 80) -> str:
    """The text, or its beginning: what clients name things must not fill a log."""
    return text if len(text) <= most else f"{text[: most - 3]}..."
