"""The global model as the server sent it: what every reply must look like, and how a result becomes arrays again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord

from robagg.flower.npy import NUMPY, Spec, look, read_header

STATISTICS = ("*running_mean", "*running_var", "*num_batches_tracked", "*moving_mean", "*moving_variance")
"""Names of BatchNorm's statistics in PyTorch and Keras."""

Flat = np.ndarray[Any, np.dtype[Any]]


class GlobalModel:
    """The arrays that a round starts from."""

    def __init__(self, arrays: ArrayRecord, aside: str | Sequence[str] = STATISTICS) -> None:
        self.arrays = arrays
        aside = read_patterns(aside)
        self.specs = {name: _describe(name, array, aside) for name, array in arrays.items()}
        if not self.measured:
            raise ValueError(
                "the model needs at least one floating-point array that no pattern of `aside` names, "
                f"got {', '.join(self.specs) or 'no arrays'}"
            )

    @property
    def measured(self) -> list[Spec]:
        """The arrays in which distances are measured."""
        return [spec for spec in self.specs.values() if not spec.aside]

    @property
    def statistics(self) -> list[Spec]:
        """The floating arrays that stay out of the distances."""
        return [spec for spec in self.specs.values() if spec.aside and not spec.whole]

    @property
    def counters(self) -> list[Spec]:
        """The integer arrays."""
        return [spec for spec in self.specs.values() if spec.whole]

    def flat(self, specs: Iterable[Spec]) -> dict[str, Flat]:
        """The numbers of some arrays, as views on the message."""
        return {spec.name: look(self.arrays[spec.name].data, spec.dtype, len(spec.header)) for spec in specs}

    def record(self, values: Mapping[str, Flat]) -> ArrayRecord:
        """Flat values of every array as a record like the one that was sent."""
        return ArrayRecord({spec.name: pack(spec, values[spec.name]) for spec in self.specs.values()})


def read_patterns(aside: str | Sequence[str]) -> tuple[str, ...]:
    """Patterns of names; a text is one pattern, not as many as it has letters.

    >>> read_patterns("*running_mean")
    ('*running_mean',)
    """
    patterns = (aside,) if isinstance(aside, str) else tuple(aside)
    if not all(isinstance(pattern, str) for pattern in patterns):
        raise TypeError(f"aside wants one pattern of names or several, got {aside!r}")
    return patterns


def pack(spec: Spec, value: Flat) -> Array:
    """A flat value as an array of the model, in its own dtype."""
    numbers = np.ascontiguousarray(value, spec.dtype)
    data = b"".join((spec.header, numbers.data.cast("B"))) if spec.size else spec.header
    return Array(str(spec.dtype), spec.shape, NUMPY, data)


def _describe(name: str, array: Array, aside: Sequence[str]) -> Spec:
    if array.stype != NUMPY:
        raise ValueError(f"the model's arrays must be serialised as {NUMPY}, got {array.stype} for {name!r}")
    dtype, shape, fortran, offset = read_header(array.data)
    floating = dtype.kind == "f" and dtype.itemsize <= 8
    if not dtype.isnative or not (floating or dtype.kind in "iub"):
        raise ValueError(f"the model's arrays must hold native real numbers, got {dtype} for {name!r}")
    named = any(fnmatchcase(name, pattern) for pattern in aside)
    return Spec(name, shape, dtype, fortran, array.data[:offset], named or not floating)
