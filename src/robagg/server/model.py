"""The model that a round starts from: what every reply must look like, and how values become a model again."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from robagg._core.leaf import FLOATS, INTEGERS, UnusableError, describe_kind, read_leaf
from robagg.server.quote import quote

STATISTICS = ("*running_mean", "*running_var", "*num_batches_tracked", "*moving_mean", "*moving_variance")
"""Names of BatchNorm's statistics in PyTorch and Keras."""

Flat = Any
"""The numbers of an array as a vector: a tensor where they are floating, a NumPy array where they are whole."""


class UnfitError(ValueError):
    """A reply cannot be used; the message says why."""


@dataclass(frozen=True)
class ArraySpec:
    """One array of the model."""

    name: str
    shape: tuple[int, ...]
    dtype: Any
    """Of NumPy where the numbers are whole, else of torch."""
    whole: bool
    """Whether it holds whole numbers."""
    aside: bool
    """Whether it stays out of the distances: an integer array, or one that matches a pattern."""


class Model:
    """The arrays that a round starts from, by name.

    Args:
        arrays: names and tensors or NumPy arrays, such as a state dict.
        aside: patterns of names of arrays that stay out of the distances.
    """

    def __init__(self, arrays: Mapping[str, Any], aside: str | Sequence[str] = STATISTICS) -> None:
        if not isinstance(arrays, Mapping):
            raise TypeError(f"the model must be a mapping of names to arrays, got {describe_kind(arrays)}")
        self.arrays = arrays
        patterns = read_patterns(aside)
        self.specs = {name: self.describe(name, array, patterns) for name, array in arrays.items()}
        if not self.measured:
            raise ValueError(
                "the model needs at least one floating-point array that no pattern of `aside` names, "
                f"got {', '.join(self.specs) or 'no arrays'}"
            )

    @property
    def measured(self) -> list[ArraySpec]:
        """The arrays in which distances are measured."""
        return [spec for spec in self.specs.values() if not spec.aside]

    @property
    def statistics(self) -> list[ArraySpec]:
        """The floating arrays that stay out of the distances."""
        return [spec for spec in self.specs.values() if spec.aside and not spec.whole]

    @property
    def counters(self) -> list[ArraySpec]:
        """The integer arrays."""
        return [spec for spec in self.specs.values() if spec.whole]

    def part(self, names: Collection[str]) -> Self:
        """The same model, of which only some arrays are asked for."""
        part = copy.copy(self)
        part.specs = {name: spec for name, spec in self.specs.items() if name in names}
        return part

    def describe(self, name: str, array: Any, patterns: Sequence[str]) -> ArraySpec:
        """What an array of the model is."""
        try:
            _, tensor = read_leaf(array)
        except UnusableError as error:
            raise ValueError(f"the model has {name!r} {error}") from None
        whole = tensor.dtype in INTEGERS
        dtype = tensor.cpu().numpy().dtype if whole else tensor.dtype
        return ArraySpec(name, tuple(tensor.shape), dtype, whole, whole or is_named(name, patterns))

    def read(self, spec: ArraySpec, value: Any) -> Flat:
        """The flat numbers of a reply's array, in the dtype and on the device of the model's; UnfitError says why not.

        Whole numbers for floating ones are sound: FedAvg averages integer arrays, and clients go on counting in theirs.
        """
        try:
            _, tensor = read_leaf(value)
        except UnusableError as error:
            raise UnfitError(f"has {spec.name!r} {error}") from None
        if tuple(tensor.shape) != spec.shape:
            raise UnfitError(f"{spec.name!r} has the shape {quote(tuple(tensor.shape))} where {spec.shape} is expected")
        if not spec.whole:
            return tensor.detach().to(self._device(spec), spec.dtype).reshape(-1)
        numbers = None if tensor.dtype in FLOATS else tensor.cpu().numpy()
        if numbers is None or not np.can_cast(numbers.dtype, spec.dtype):
            raise UnfitError(f"{spec.name!r} holds {name_dtype(tensor.dtype)} where {spec.dtype} is expected")
        return numbers.astype(spec.dtype, copy=False).reshape(-1)

    def flat(self, specs: Iterable[ArraySpec]) -> dict[str, Flat]:
        """The model's own numbers."""
        return {spec.name: self.read(spec, self.arrays[spec.name]) for spec in specs}

    def rebuild(self, values: Mapping[str, Flat]) -> Any:
        """Flat values as a model of the same kind; arrays without a value stay as they are."""
        return {name: self._shape(self.specs[name], values[name]) if name in values else own
                for name, own in self.arrays.items()}  # fmt: skip

    def _device(self, spec: ArraySpec) -> torch.device:
        own = self.arrays[spec.name]
        return own.device if isinstance(own, Tensor) else torch.device("cpu")

    def _shape(self, spec: ArraySpec, value: Flat) -> Any:
        tensor = torch.from_numpy(np.array(value)) if spec.whole else value
        tensor = tensor.reshape(spec.shape)
        if isinstance(self.arrays[spec.name], Tensor):
            return tensor.to(self._device(spec))
        return tensor.numpy().astype(np.asarray(self.arrays[spec.name]).dtype, copy=False)


def is_named(name: str, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns matches."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def name_dtype(dtype: Any) -> str:
    """A dtype's name, the same for torch and NumPy."""
    return str(dtype).removeprefix("torch.")


def read_patterns(aside: str | Sequence[str]) -> tuple[str, ...]:
    """Patterns of names; a text is one pattern, not as many as it has letters.

    >>> read_patterns("*running_mean")
    ('*running_mean',)
    """
    patterns = (aside,) if isinstance(aside, str) or not isinstance(aside, Iterable) else tuple(aside)
    if not all(isinstance(pattern, str) for pattern in patterns):
        raise TypeError(f"aside must be one pattern of names or several, got {aside!r}")
    return patterns
