"""What rules and attacks are called in tables and figures: texts for the terminal, names of the field for papers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from robagg._core.checks import is_whole
from robagg._core.registry import Named, Registry, split_call
from robagg._core.rule import stages
from robagg.attacks import attacks
from robagg.attacks.strength import ByFormula


def write_strength(attack: str, n: Any = None, f: Any = None) -> str:
    """An attack's text with the strength that it leaves out; one by a formula needs n and f.

    >>> write_strength("minmax"), write_strength("minmax(scale=0.5)"), write_strength("lf")
    ('minmax(scale=1)', 'minmax(scale=0.5)', 'lf')
    >>> write_strength("ipm(jitter=0.5)", 20, 6), write_strength("ipm")
    ('ipm(c0=7, jitter=0.5)', 'ipm')
    """
    try:
        name, given = split_call(attack, "attack")
        known = attacks.parse(attack)
    except (TypeError, ValueError):  # of a plugin that is not loaded
        return attack
    own = [field for field in dataclasses.fields(known) if field.name in type(known).__annotations__]
    strength = own[0] if own else None
    if strength is None or strength.name in given:
        return attack
    value = getattr(known, strength.name)
    if isinstance(known, ByFormula) and value is None and is_whole(n) and is_whole(f):
        value = known.strength(n, f)
    if not isinstance(value, float):  # a count, such as of rounds, is no strength
        return attack
    return _spell(name, {strength.name: f"{value:.3g}"} | {key: repr(item) for key, item in given.items()})


def name_rule(rule: str) -> str:
    """A rule or a chain by the names of its classes.

    >>> name_rule("nnm >> tq(floor=False)"), name_rule("mine")
    ('NNM >> TQ (floor=False)', 'mine')
    """
    return " >> ".join(_name(part, stages) for part in rule.split(" >> "))


def name_attack(attack: str) -> str:
    """An attack by the name of its class.

    >>> name_attack("alie(z=0.5)")
    'ALIE (z=0.5)'
    """
    return _name(attack, attacks)


def label(value: object, axis: str, group: Mapping[str, Any], *, display: bool = False) -> str:
    """A row's or a column's name; a setting that a record does not name is the task's, and some splits have no rho.

    Args:
        value: of the axis.
        axis: such as `attack` or `method`.
        group: what is the same in the whole table, n and f among it.
        display: names of classes in place of texts.
    """
    if value is None:
        return "-" if axis == "rho" else "default"
    text = str(value)
    if axis == "attack":
        text = write_strength(text, group.get("n"), group.get("f"))
        return name_attack(text) if display else text
    return name_rule(text) if display and axis in ("method", "mixers", "core") and text else text


def _name(text: str, registry: Registry[Any]) -> str:
    try:
        name, given = split_call(text, registry.kind)
        found: type[Named] = registry.find(name)
    except ValueError:
        return text
    shown = _spell(found.__name__, {key: f"{value}" for key, value in given.items()})
    return shown.replace("(", " (", 1)


def _spell(name: str, given: Mapping[str, str]) -> str:
    return f"{name}({', '.join(f'{key}={value}' for key, value in given.items())})" if given else name
