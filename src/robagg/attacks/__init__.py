"""The attacks, one file each; `parse` reads them from text: `parse("alie(z=1.0)")`."""

from __future__ import annotations

from typing import Any

from robagg.attack import Attack, State, View
from robagg.attacks.alie import ALIE
from robagg.attacks.bit_flip import BF
from robagg.attacks.gaussian import GA
from robagg.attacks.ipm import IPM
from robagg.attacks.label_flip import LF
from robagg.attacks.mimic import MIMIC
from robagg.attacks.mixed import Mixed
from robagg.attacks.no_attack import NoAttack
from robagg.attacks.non_finite import NonFinite
from robagg.attacks.sign_flip import SignFlip
from robagg.registry import Registry

__all__ = [
    "ALIE",
    "BF",
    "GA",
    "IPM",
    "LF",
    "MIMIC",
    "Attack",
    "Mixed",
    "NoAttack",
    "NonFinite",
    "SignFlip",
    "State",
    "View",
    "attacks",
    "parse",
]

attacks: Registry[Attack] = Registry("attack", Attack, "robagg.attacks")  # type: ignore[type-abstract]


def parse(text: str, **defaults: Any) -> Attack:
    """Read an attack from text; `defaults` fill those fields it has and the text leaves out.

    >>> parse("ipm(c0=1)")
    IPM(c0=1.0)
    >>> parse("A-Little-Is-Enough", z=1.5)
    ALIE(z=1.5)
    """
    return attacks.parse(text, **defaults)
