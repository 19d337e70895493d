"""Families of attacks that differ in their strength alone, and the attacks beside them that have none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robagg._core.registry import fold, unknown

DISTANCES = (0.25, 0.5, 1.0, 2.0, 4.0)
"""In standard deviations, or in honest spreads."""
SCALES = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Times a vector that an attack sends."""
PERIODS = (5.0, 20.0, 80.0)
"""Rounds."""
SHARES = (0.25, 0.5, 0.75, 1.0, 1.5)
"""Times a distance that a formula gives."""


@dataclass(frozen=True)
class Family:
    """Attacks that differ in one parameter, its strength.

    Example:
        >>> Family("alie-jitter", "alie", "z", (0.5, 1.0), "jitter=0.5").spell(1.0)
        'alie(z=1.0, jitter=0.5)'
    """

    name: str
    attack: str
    parameter: str
    strengths: tuple[float, ...]
    """Those that are tried first, in rising order."""
    rest: str = ""
    """The other parameters."""
    quick: bool = False
    """Whether it is part of a quick look."""

    def spell(self, strength: float) -> str:
        """The attack of this strength, as text."""
        return f"{self.attack}({self.parameter}={strength!r}{', ' if self.rest else ''}{self.rest})"

    @property
    def title(self) -> str:
        """What people read over a figure."""
        return f"{self.attack}{f'({self.rest})' if self.rest else ''}"


FAMILIES = (
    Family("alie", "alie", "z", DISTANCES, quick=True),
    *(Family(f"alie-{j:g}", "alie", "z", DISTANCES, f"jitter={j}", j == 0.5) for j in (0.12, 0.5, 1.0)),
    Family("ipm", "ipm", "c0", SCALES, quick=True),
    *(Family(f"ipm-{j:g}", "ipm", "c0", SCALES, f"jitter={j}", j == 0.5) for j in (0.12, 0.5, 1.0)),
    Family("minmax-std", "minmax", "scale", SHARES, quick=True),
    Family("minmax-mean", "minmax", "scale", SHARES, "along='mean'", True),
    Family("minmax-sign", "minmax", "scale", SHARES, "along='sign'"),
    Family("minsum-std", "minsum", "scale", SHARES),
    Family("minsum-mean", "minsum", "scale", SHARES, "along='mean'"),
    Family("minsum-sign", "minsum", "scale", SHARES, "along='sign'"),
    Family("heap-std", "heap", "distance", DISTANCES),
    Family("heap-mean", "heap", "distance", DISTANCES, "along='mean'", True),
    Family("heap-sign", "heap", "distance", DISTANCES, "along='sign'", True),
    Family("heap-period", "heap", "period", PERIODS, "along='mean', distance=0.5"),
    Family("groups-std", "groups", "distance", DISTANCES),
    Family("groups-mean", "groups", "distance", DISTANCES, "along='mean'"),
    Family("groups-sign", "groups", "distance", DISTANCES, "along='sign'"),
    Family("decoy-std", "decoy", "distance", DISTANCES),
    Family("decoy-mean", "decoy", "distance", DISTANCES, "along='mean'", True),
    Family("decoy-sign", "decoy", "distance", DISTANCES, "along='sign'"),
    Family("bf", "bf", "scale", SCALES, quick=True),
    Family("bf-0.9", "bf", "scale", SCALES, "momentum=0.9"),
    Family("bf-0.99", "bf", "scale", SCALES, "momentum=0.99"),
)
PLAIN = (
    *("none", "ga", "lf", "mimic", "mixed", "nonfinite"),
    *(f"clones(of='{of}')" for of in ("near", "far", "centre", "rim")),
    *(f"optimal(jitter={jitter})" for jitter in (0.0, 0.12, 0.5, 1.0)),
    *(f"optimal(aim='either', jitter={jitter})" for jitter in (0.0, 0.5)),
    "optimal(aim='far', jitter=0.5)",
)
"""Attacks without a strength, and those that choose it themselves."""
QUICK_PLAIN = ("none", "lf", "mimic", "clones(of='near')", "optimal(jitter=0.5)")


def choose_families(names: Sequence[str] | None, *, quick: bool = False) -> tuple[Family, ...]:
    """Families by name, or by the name of their attack; None: all, or those of a quick look.

    >>> [family.name for family in choose_families(["alie-0.5", "bf"])]
    ['alie-0.5', 'bf', 'bf-0.9', 'bf-0.99']
    """
    if names is None:
        return tuple(family for family in FAMILIES if family.quick or not quick)
    known = [family.name for family in FAMILIES]
    chosen: list[Family] = []
    for name in names:
        found = [f for f in FAMILIES if name.strip().lower() == f.name] if "-" in name else []
        found = found or [family for family in FAMILIES if fold(name) == family.attack]
        if not found:
            raise ValueError(unknown("family", name, known, known))
        chosen += found
    return tuple(dict.fromkeys(chosen))
