"""What a store has of a profile: points over strength, and the worst case of each family with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from robagg.attacks import attacks
from robagg.lab.lines import Record
from robagg.profile.families import Family
from robagg.profile.plan import CONTROL, Profile
from robagg.report.tables import Cell, sum_up


@dataclass(frozen=True)
class Point:
    """What a rule came to under one attack."""

    rule: str
    attack: str
    strength: float | None
    """None for an attack that has none."""
    cell: Cell

    @property
    def mean(self) -> float:
        return self.cell.mean or 0.0


@dataclass(frozen=True)
class Found:
    """What a store has of a profile."""

    profile: Profile
    points: Mapping[tuple[str, str], tuple[Point, ...]]
    """By rule and family, in the order of strength; an attack without strength is a family of its own."""
    runs: Mapping[str, int]
    """How many there are by rule."""

    def find_worst(self, rule: str, family: str) -> Point | None:
        """The point of a family with the least mean."""
        return min(self.points.get((rule, family), ()), key=lambda point: point.mean, default=None)

    def find_worst_of_all(self, rule: str) -> Point | None:
        """The point with the least mean of all attacks."""
        return min(self._attacked(rule), key=lambda point: point.mean, default=None)

    def find_lowest(self, rule: str) -> float | None:
        """The least accuracy of a single run under attack."""
        return min((value for point in self._attacked(rule) for value in point.cell.values), default=None)

    def _attacked(self, rule: str) -> list[Point]:
        own = [points for (other, family), points in self.points.items() if other == rule and family != CONTROL]
        return [point for points in own for point in points if point.cell.values]


def gather(profile: Profile, records: Mapping[str, Record]) -> Found:
    """The points of a profile, of every strength that the store has, also those that another profile asked for."""
    rules = {profile.make(rule, "none", profile.seeds[0]).rule: rule for rule in profile.rules}
    plain = {profile.make(profile.rules[0], text, profile.seeds[0]).attack: text for text in profile.plain}
    found: dict[tuple[str, str], dict[tuple[float | None, str], list[Record]]] = {}
    counts = dict.fromkeys(profile.rules, 0)
    for record in records.values():
        spec = record["spec"]
        rule = rules.get(spec["rule"])
        if rule is None or spec["seed"] not in profile.seeds or record["status"] != "ok":
            continue
        if profile.make(rule, spec["attack"], spec["seed"]).describe() != spec:
            continue
        counts[rule] += 1
        places: list[tuple[str, float | None]] = []
        if spec["attack"] in plain:
            places.append((plain[spec["attack"]], None))
        places += [
            (family.name, strength)
            for family in profile.families
            if (strength := read_strength(family, spec["attack"])) is not None
        ]
        for name, strength in places:
            found.setdefault((rule, name), {}).setdefault((strength, spec["attack"]), []).append(record)
    points = {
        place: tuple(
            Point(place[0], attack, strength, sum_up(runs))
            for (strength, attack), runs in sorted(own.items(), key=lambda item: item[0][0] or 0.0)
        )
        for place, own in found.items()
    }
    return Found(profile, points, counts)


def read_strength(family: Family, attack: str) -> float | None:
    """The strength of an attack of this family; None for one that is not of it.

    >>> from robagg.profile.families import FAMILIES
    >>> read_strength(FAMILIES[0], "alie(z=0.7)"), read_strength(FAMILIES[0], "alie(z=0.7, jitter=0.5)")
    (0.7, None)
    """
    thing = attacks.parse(attack)
    if thing.name() != family.attack:
        return None
    strength = getattr(thing, family.parameter)
    return strength if strength is not None and attacks.parse(family.spell(strength)) == thing else None
