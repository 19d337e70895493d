"""Strengths: checked numbers, and those that a formula in n and f gives where none is set."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from robagg._core.checks import check_positive, read_number
from robagg.attacks.base import Attack
from robagg.attacks.jittered import Jittered


def read_strength(attack: Attack, name: str, *, positive: bool = False) -> None:
    """Check a field that must be a finite number, or one above 0, and keep it as a float: one attack has one text."""
    value = read_number(name, getattr(attack, name))
    if positive:
        check_positive(**{name: value})
    object.__setattr__(attack, name, value)


def read_part(attack: Attack, name: str) -> None:
    """Check a field that must be a number from 0 to 1, and keep it as a float."""
    value = read_number(name, getattr(attack, name))
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be a number from 0 to 1, got {value:g}")
    object.__setattr__(attack, name, value)


@dataclass(frozen=True)
class ByFormula(Jittered):
    """An attack whose strength, a field, is a number or None: by the formula that its paper gives."""

    parameter: ClassVar[str]
    """The name of that field."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if getattr(self, self.parameter) is not None:
            read_strength(self, self.parameter)

    @abstractmethod
    def compute_strength(self, n: int, f: int) -> float:
        """The formula."""

    def strength(self, n: int, f: int) -> float:
        """The strength in force: the one given, or the formula's."""
        given: float | None = getattr(self, self.parameter)
        return self.compute_strength(n, f) if given is None else given

    def describe(self, n: int, f: int) -> str:
        origin = "from the formula" if getattr(self, self.parameter) is None else "as given"
        return f"{self.parameter} = {self.strength(n, f):.3g} {origin}{self.describe_jitter()}"
