"""Another library's name for a thing: its parameters, their order and its defaults mean what they mean there."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Translation = str | tuple[str, Callable[[Any], Any]] | None
"""What a parameter is here: a field, a field and what makes its value of theirs, or nothing at all."""


class Alias(str):
    """A name by which a class is found, with the parameters that it has elsewhere.

    >>> name = Alias("GeometricMedian", {"nu": "smoothing", "T": "iterations"}, iterations=3)
    >>> name.put([0.2], {})
    {'smoothing': 0.2}
    >>> name.put([], {"T": 5, "f": 2})
    {'iterations': 5, 'f': 2}
    >>> dict(name.defaults)
    {'iterations': 3}
    """

    takes: Mapping[str, Translation]
    defaults: Mapping[str, Any]

    def __new__(cls, name: str, takes: Mapping[str, Translation] | None = None, **defaults: Any) -> Alias:
        made = super().__new__(cls, name)
        made.takes, made.defaults = takes or {}, defaults
        return made

    def put(self, given: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """Our fields, from values by place and by name; a name that is not theirs stays as it is.

        The defaults are left to the caller, whose own may come before them.
        """
        if len(given) > len(self.takes):
            raise ValueError(f"{self!s} must get at most {len(self.takes)} values by place, got {len(given)}")
        fields: dict[str, Any] = {}
        pairs = [*zip(self.takes, given, strict=False), *named.items()]
        if twice := {key for key, _ in pairs[: len(given)]} & set(named):
            raise ValueError(f"{min(twice)} of {self} must be given once, got it by place and by name")
        for key, value in pairs:
            ours = self.takes.get(key, key)
            if isinstance(ours, tuple):
                fields[ours[0]] = ours[1](value)
            elif ours is not None:
                fields[ours] = value
            elif value is not None:
                warnings.warn(f"{key}={value!r} of {self} has no effect in robagg", RuntimeWarning, stacklevel=4)
        return fields
