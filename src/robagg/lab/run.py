"""One run: everything that its result depends on, and a key made of all of it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from robagg._core.checks import is_whole
from robagg._core.registry import Named, split_call
from robagg._core.rule import Rule, parse
from robagg._core.stage import Stage
from robagg.attacks import attacks
from robagg.attacks.base import Attack
from robagg.lab.plugins import find_plugins
from robagg.splits import Split, splits
from robagg.tasks.base import Task, tasks
from robagg.training import Settings

RESULTS_VERSION = 1
"""Raised whenever our numbers change, so that old results are not taken for new ones."""

MOST = 1_000_000
"""The most clients of a run."""

Overrides = tuple[tuple[str, Any], ...]


class Parts(NamedTuple):
    """What the texts of a run name."""

    task: Task
    rule: Rule
    attack: Attack
    split: Split


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run as text and numbers. Texts are brought to one spelling, so equal runs are equal however they were written.

    Args:
        rule: a rule or a chain; parts that name no f get the run's. `tq(f=none)` asks for f_max.
        attack: what the f Byzantine clients do.
        task: the data, the model and the defaults of training.
        split: who holds what.
        n: clients; 0: the task's own number.
        f: how many of them are Byzantine.
        seed: sets the split, the weights, the batches and the attack.
        settings: fields of `Settings` that differ from the task's.

    Example:
        >>> run = Run(rule="nnm>>TQ", attack="IPM(c0=1)", f=6, settings={"rounds": 50, "batch": 32})
        >>> run.rule, run.attack, run.split, run.n, run.settings
        ('nnm(f=6) >> tq(f=6)', 'ipm(c0=1.0)', 'rho(rho=0.5)', 20, (('rounds', 50),))
        >>> run == Run.from_json(run.to_json())
        True
        >>> run.key == Run(rule="NNM >> tq(f=6)", attack="ipm(c0=1.0)", f=6, settings={"rounds": 50}).key
        True
    """

    rule: str
    attack: str = "none"
    task: str = "digits"
    split: str = "rho"
    n: int = 0
    f: int = 0
    seed: int = 0
    settings: Overrides | Mapping[str, Any] = ()

    def __post_init__(self) -> None:
        for name in ("n", "f", "seed"):
            value = getattr(self, name)
            if not is_whole(value) or value < 0:
                raise ValueError(f"{name} must be a whole number from 0 on, got {value!r}")
            self._put(name, int(value))
        if self.n > MOST:
            raise ValueError(f"n must be at most {MOST:,}, got {self.n:,}")
        for name in ("attack", "task", "split"):
            self._put(name, str(getattr(self, name)))
        self._put("n", self.n or self.parts.task.n)
        task, rule, attack, split = self.parts
        if not self.f < self.n:
            raise ValueError(f"f must be below n, so that a client is honest, got n={self.n}, f={self.f}")
        self._put("settings", _differences(task.settings, dict(self.settings)))
        asked = self.effective.count_asked(self.n)
        for stage in rule.stages:
            try:
                stage.resolve_f(asked)
            except ValueError as error:
                of = f"share={self.effective.share} asks {asked} of {self.n} clients: " if asked < self.n else ""
                raise ValueError(f"{of}{error}") from error
        self._put("task", spell(task))
        self._put("rule", " >> ".join(spell(stage) for stage in rule.stages))
        self._put("attack", spell(attack))
        self._put("split", spell(split))

    @cached_property
    def parts(self) -> Parts:
        """What the texts name."""
        rule = parse(self.rule, f=self.f)
        return Parts(tasks.parse(self.task), rule, attacks.parse(self.attack), splits.parse(self.split))

    @cached_property
    def effective(self) -> Settings:
        """The task's settings with this run's."""
        return dataclasses.replace(self.parts.task.settings, **dict(self.settings))

    @property
    def plugins(self) -> dict[str, str]:
        """The plugin classes this run uses, each with the hash of its file."""
        task, rule, attack, split = self.parts
        used: dict[str, str] = {}
        for part in (task, *rule.stages, attack, split):
            used |= find_plugins(part)
        return used

    @property
    def key(self) -> str:
        """A hash over everything that can change the result: also defaults, plugins, and the results version."""
        task, rule, attack, split = self.parts
        identity = {
            "version": RESULTS_VERSION,
            "task": [spell(task, full=True), task.loss],
            "rule": [spell_revised(stage, rule.stages[:k]) for k, stage in enumerate(rule.stages)],
            "attack": spell(attack, full=True),
            "split": spell(split, full=True),
            "numbers": [self.n, self.f, self.seed],
            "settings": identify(self.effective),
            "plugins": self.plugins,
        }
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:24]

    def describe(self) -> dict[str, Any]:
        """As plain values."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return fields | {"settings": dict(self.settings)}

    def to_json(self) -> str:
        return json.dumps(self.describe())

    @classmethod
    def from_json(cls, text: str | Mapping[str, Any]) -> Run:
        """Read what `to_json` wrote (or its values); plugins must have been loaded."""
        return cls(**(json.loads(text) if isinstance(text, str) else text))

    def __str__(self) -> str:
        changed = "".join(f", {name}={value}" for name, value in dict(self.settings).items())
        rule = shorten(self.rule, self.f)
        return f"{self.task}, {rule}, {self.attack}, {self.split}, n={self.n}, f={self.f}, seed={self.seed}{changed}"

    def _put(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


def spell(thing: Named, *, full: bool = False) -> str:
    """The one text of an object: its fields that are not at their default, or all; f and rho always stand in it.

    In full too, a field that came later (`LATER`) is left out at its default: keys of stored results stay theirs. One
    that a revision stands for (`REVISED`) is left out of the full text.
    `str` leaves an f out that is None; read again under another f it would be another rule.

    >>> from robagg import TQ
    >>> spell(TQ())
    'tq(f=None)'
    >>> spell(TQ(f=2), full=True)
    'tq(f=2, iterations=10)'
    """
    shown = []
    for field in dataclasses.fields(cast(Any, thing)):
        value = _plain(getattr(thing, field.name), field.type)
        if full and field.metadata.get("revised"):
            continue
        always = (full and not field.metadata.get("later")) or field.name in ("f", "rho")
        if field.init and (always or value != field.default):
            shown.append(f"{field.name}={value!r}")
    return f"{thing.name()}({', '.join(shown)})" if shown else thing.name()


def spell_revised(stage: Stage, front: Sequence[Stage]) -> str:
    """A stage's full text, with the revision of what it gives behind these stages where there is one.

    >>> from robagg import NNM, TQ
    >>> spell_revised(TQ(f=2), []), spell_revised(TQ(f=2), [NNM(f=2)])
    ('tq(f=2, iterations=10)', 'tq(f=2, iterations=10) revision 1')
    >>> spell_revised(TQ(f=2, floor=False), [NNM(f=2)])
    'tq(f=2, iterations=10)'
    """
    revision = stage.revise(front)
    return f"{spell(stage, full=True)} revision {revision}" if revision else spell(stage, full=True)


def identify(settings: Settings) -> dict[str, Any]:
    """All settings as a key has them: without those that came later, at their default; a task's functions by name.

    >>> sorted(identify(Settings()).keys() ^ identify(Settings(weight_decay=0.1)).keys())
    ['weight_decay']
    """
    values = dataclasses.asdict(settings)
    for field in dataclasses.fields(settings):
        value = values[field.name]
        if field.metadata.get("later") and value == field.default:
            del values[field.name]
        elif callable(value):  # its source is in the key of the plugin that has it
            values[field.name] = getattr(value, "__qualname__", type(value).__qualname__)
    return values


def shorten(rule: str, f: int) -> str:
    """A rule's text without the f that is the run's anyway.

    >>> shorten("nnm(f=6) >> tq(f=6, iterations=20)", 6)
    'nnm >> tq(iterations=20)'
    >>> shorten("tq(f=None)", 6)
    'tq(f=None)'
    """
    stages = []
    for text in rule.split(" >> "):
        name, given = split_call(text, "rule")
        shown = [f"{key}={value!r}" for key, value in given.items() if (key, value) != ("f", f)]
        stages.append(f"{name}({', '.join(shown)})" if shown else name)
    return " >> ".join(stages)


def _plain(value: Any, kind: Any) -> Any:
    """One value for one meaning: 1 for a float is 1.0, a NumPy number is a number, a list is a tuple."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, list | tuple):
        return tuple(_plain(item, float if "float" in str(kind) else kind) for item in value)
    floating = kind is float or str(kind) in ("float", "float | None")
    return float(value) if floating and is_whole(value) else value


def _differences(defaults: Settings, given: dict[str, Any]) -> Overrides:
    kinds = {field.name: field.type for field in dataclasses.fields(Settings)}
    plain = {name: _plain(value, kinds.get(name)) for name, value in given.items()}
    changed = defaults.change(plain)  # says what is no setting, or no value of one
    for name, value in plain.items():
        if callable(value):
            raise ValueError(f"{name} must be text or numbers, which a store can hold, got the function {value!r}")
    return tuple(
        sorted((name, getattr(changed, name)) for name in plain if getattr(changed, name) != getattr(defaults, name))
    )
