"""The global model as Flower sends it: an array is its bytes, read in place, and a value becomes such bytes again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from flwr.app import Array, ArrayRecord

from robagg._core.leaf import view as as_tensor
from robagg.flower.npy import NUMPY, Spec, look, read_header, view
from robagg.server.model import ArraySpec, Flat, Model, is_named


class GlobalModel(Model):
    """The arrays that a round starts from, in a record."""

    arrays: ArrayRecord
    specs: dict[str, Spec]  # type: ignore[assignment]

    def describe(self, name: str, array: Any, patterns: Sequence[str]) -> Spec:
        if array.stype != NUMPY:
            raise ValueError(f"the model's arrays must be serialised as {NUMPY}, got {array.stype} for {name!r}")
        dtype, shape, fortran, offset = read_header(array.data)
        floating = dtype.kind == "f" and dtype.itemsize <= 8
        if not dtype.isnative or not (floating or dtype.kind in "iub"):
            raise ValueError(f"the model's arrays must hold native real numbers, got {dtype} for {name!r}")
        aside = not floating or is_named(name, patterns)
        flat_dtype = torch.from_numpy(np.empty(0, dtype)).dtype if floating else dtype
        return Spec(name, shape, flat_dtype, not floating, aside, dtype, fortran, array.data[:offset])

    def read(self, spec: ArraySpec, value: Any) -> Flat:
        numbers = view(value, self.specs[spec.name])
        return numbers if spec.whole else as_tensor(numbers)

    def flat(self, specs: Iterable[ArraySpec]) -> dict[str, Flat]:
        return {spec.name: as_tensor(self.look(spec)) for spec in specs}

    def look(self, spec: ArraySpec) -> np.ndarray[Any, np.dtype[Any]]:
        """The numbers of an array as a view on the message."""
        own = self.specs[spec.name]
        return look(self.arrays[spec.name].data, own.numpy_dtype, len(own.header))

    def rebuild(self, values: Mapping[str, Flat]) -> ArrayRecord:
        """Flat values as a record like the one that was sent; arrays without a value stay as they are."""
        return ArrayRecord(
            {name: pack(self.specs[name], values[name]) if name in values else own for name, own in self.arrays.items()}
        )


def pack(spec: Spec, value: Flat) -> Array:
    """A flat value as an array of the model, in its own dtype."""
    numbers = np.ascontiguousarray(value, spec.numpy_dtype)
    data = b"".join((spec.header, numbers.data.cast("B"))) if spec.size else spec.header
    return Array(str(spec.numpy_dtype), spec.shape, NUMPY, data)
