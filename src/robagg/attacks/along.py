"""Attacks that leave the honest mean in one direction, which is a parameter."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from robagg.attacks.alie import deviate
from robagg.attacks.base import Attack, View
from robagg.attacks.jittered import Jittered

DIRECTIONS = ("mean", "std", "sign")


@dataclass(frozen=True)
class Along(Jittered):
    """An attack along a unit vector u: minus the mean, minus the standard deviations, or minus the mean's signs."""

    along: str = "std"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "along", DIRECTIONS)

    def aim(self, view: View) -> Tensor:
        """(d,) the unit vector u, in float32 at least; 0 where the direction has no length."""
        u = view.mean
        if self.along == "std":
            u = deviate(view.honest, view.mean)
        elif self.along == "sign":
            u = view.mean.sign()
        u = u.to(view.away.dtype)
        length: Tensor = torch.linalg.vector_norm(u).clamp(min=torch.finfo(u.dtype).tiny)
        return u / -length

    def leave(self, view: View, distance: Tensor | float) -> Tensor:
        """(d,) the point so far from the honest mean."""
        return (view.mean + distance * self.aim(view)).to(view.honest.dtype)


def check_choice(attack: Attack, name: str, choices: tuple[str, ...]) -> None:
    """Refuse a field that is none of these words."""
    value = getattr(attack, name)
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
