"""Reads the numbers of a received array in place: a view on the message's bytes, after its length and header are right.

`Array.numpy()` copies every array, and decodes before anyone has asked how long it is.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from flwr.app import Array

from robagg.server.model import ArraySpec, UnfitError
from robagg.server.quote import quote

NUMPY = "numpy.ndarray"
LONGEST_HEADER = 4096
"""A header takes 128 bytes; one of more than 4096 is refused."""


@dataclass(frozen=True)
class Spec(ArraySpec):
    """One array of the model. Arrays are kept flat, in the order in which they lie in the message."""

    numpy_dtype: np.dtype[Any]
    fortran: bool
    header: bytes
    """What the .npy format writes before the numbers; a reply of the same kind starts with the same bytes."""

    @cached_property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @cached_property
    def nbytes(self) -> int:
        return self.size * self.numpy_dtype.itemsize


def view(array: Array, spec: Spec) -> np.ndarray[Any, np.dtype[Any]]:
    """The flat numbers of a reply's array, in the dtype and memory order of the model's."""
    if array.stype != NUMPY:
        raise UnfitError(f"{spec.name!r} is serialised as {quote(array.stype)}, not as {NUMPY}")
    data = array.data
    if len(data) == len(spec.header) + spec.nbytes and data.startswith(spec.header):
        return look(data, spec.numpy_dtype, len(spec.header))
    # Not the model's own bytes before the numbers: another dtype or writer, perhaps in good faith. Length first.
    if not spec.size <= len(data) <= LONGEST_HEADER + 8 * spec.size:
        raise UnfitError(f"{spec.name!r} has {len(data)} bytes where {len(spec.header) + spec.nbytes} are expected")
    try:
        dtype, shape, fortran, offset = read_header(data)
    except Exception as error:
        raise UnfitError(f"{spec.name!r} is no readable array: {quote(error)}") from None
    if shape != spec.shape:
        raise UnfitError(f"{spec.name!r} has the shape {quote(shape)} where {spec.shape} is expected")
    # Whole numbers for floating ones are sound: FedAvg averages integer arrays, and clients go on counting in theirs.
    fits = np.can_cast(dtype, spec.numpy_dtype) if spec.whole else dtype.kind in "fiub" and dtype.itemsize <= 8
    if not fits:
        raise UnfitError(f"{spec.name!r} holds {quote(dtype)} where {spec.numpy_dtype} is expected")
    if len(data) - offset != spec.size * dtype.itemsize:
        raise UnfitError(
            f"{spec.name!r} has {len(data) - offset} bytes of numbers where {spec.size} {dtype} are expected"
        )
    numbers = look(data, dtype, offset)
    if fortran != spec.fortran and len(shape) > 1:
        numbers = numbers.reshape(shape, order="F" if fortran else "C").ravel(order="F" if spec.fortran else "C")
    if dtype != spec.numpy_dtype or not numbers.flags.aligned:
        with np.errstate(over="ignore"):  # what is too large for the model's dtype becomes Inf, and is broken as such
            numbers = numbers.astype(spec.numpy_dtype)
    return numbers


def look(data: bytes, dtype: np.dtype[Any], offset: int) -> np.ndarray[Any, np.dtype[Any]]:
    """The numbers from there on, in place; an empty array has no place."""
    return np.frombuffer(data, dtype, offset=offset) if len(data) > offset else np.empty(0, dtype)


def read_header(data: bytes) -> tuple[np.dtype[Any], tuple[int, ...], bool, int]:
    """Dtype, shape, whether in Fortran order, and where the numbers begin."""
    head = io.BytesIO(data[:LONGEST_HEADER])
    version = np.lib.format.read_magic(head)
    if version == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(head, max_header_size=LONGEST_HEADER)
    elif version == (2, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(head, max_header_size=LONGEST_HEADER)
    else:
        raise ValueError(f"the format version must be 1.0 or 2.0, got {version}")
    if any(length < 0 for length in shape):
        raise ValueError(f"lengths must be 0 or more, got {shape}")
    return dtype, tuple(shape), bool(fortran), head.tell()
