"""Which runs a profile takes: first a coarse grid, then more strengths where a family is near the rule's worst case."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from robagg.lab import Options, Run, Store, Summary, Watcher, sweep
from robagg.lab.lines import Record
from robagg.profile.families import FAMILIES, PLAIN, Family

NEAR = 10.0
"""A family whose worst case so far is within so many points of the rule's is looked at more closely."""
LOST = 15.0
"""At or below this accuracy nothing is left to look for."""
CONTROL = "none"
CLOSE = 1.05
"""Strengths whose ratio is below this are one."""


@dataclass(frozen=True)
class Profile:
    """What is profiled, and how closely.

    Args:
        rules: rules or chains; parts that name no f get the profile's.
        task: data, model and settings.
        n: clients; 0: the task's own number.
        f: how many of them are Byzantine.
        rho: the heterogeneity of the paper's split.
        seeds: how many; strengths are searched on the first, and worst cases run on all.
        steps: how often the worst strength of a family is looked for between its neighbours.
        families: attacks over their strength.
        plain: attacks that have none.
        settings: fields of `Settings` that differ from the task's.
    """

    rules: tuple[str, ...]
    task: str = "digits"
    n: int = 0
    f: int = 6
    rho: float = 0.5
    seeds: tuple[int, ...] = (0, 1, 2)
    steps: int = 3
    families: tuple[Family, ...] = FAMILIES
    plain: tuple[str, ...] = PLAIN
    settings: tuple[tuple[str, Any], ...] = ()

    @cache  # noqa: B019 - a profile lives as long as its process
    def make(self, rule: str, attack: str, seed: int) -> Run:
        """One run of it."""
        return Run(
            rule=rule,
            attack=attack,
            task=self.task,
            split=f"rho(rho={self.rho!r})",
            n=self.n,
            f=self.f,
            seed=seed,
            settings=self.settings,
        )

    def read(self, rule: str, attack: str, seed: int, records: Mapping[str, Record]) -> float | None:
        """What a run came to: 0 where it diverged; None where there is no result."""
        record = records.get(self.make(rule, attack, seed).key)
        if record is None or record["status"] != "ok":
            return None
        return 0.0 if record["diverged"] is not None else record["accuracy"]


def propose(profile: Profile, records: Mapping[str, Record]) -> list[Run]:
    """The runs to do next; none: the profile is complete.

    The same records give the same runs, so a profile that was stopped goes on where it was. First every strength of the
    families, and every attack without one, is run on the first seed. In each step after that a family near the rule's
    worst case gets strengths halfway (in ratio) between its own worst and the neighbours. Last, the worst strength of
    each family near the rule's worst case is run on all seeds; where that shows another to be worse, so is that one.
    """
    first = profile.seeds[0]
    wanted: list[tuple[str, str, int]] = []
    means = {rule: _Means(profile, rule, records) for rule in profile.rules}
    for rule, own in means.items():
        wanted += [(rule, attack, first) for group in own.groups for attack in own.list_attacks(group)]
    for step in range(profile.steps + 1):
        if runs := _lack(profile, wanted, records):
            return runs
        for rule, own in means.items() if step < profile.steps else ():
            for family, strength in own.look_closer():
                own.groups[family].append(strength)
                wanted.append((rule, family.spell(strength), first))
    wanted = [(rule, attack, seed) for rule, own in means.items() for attack in own.confirm() for seed in profile.seeds]
    return _lack(profile, wanted, records)


def _lack(profile: Profile, wanted: Sequence[tuple[str, str, int]], records: Mapping[str, Record]) -> list[Run]:
    """Those of the runs that have no record."""
    runs = {(run := profile.make(*place)).key: run for place in wanted}
    return [run for key, run in runs.items() if key not in records]


class _Means:
    """What is known of one rule: mean accuracies by attack, in groups of those that differ in strength alone."""

    def __init__(self, profile: Profile, rule: str, records: Mapping[str, Record]) -> None:
        self.profile, self.rule, self.records = profile, rule, records
        # Those without a strength come first, as the optimal attacker takes longest: at the end it would go on alone.
        self.groups: dict[Family | str, list[float]] = {attack: [] for attack in profile.plain}
        self.groups |= {family: [*family.strengths] for family in profile.families}

    def list_attacks(self, group: Family | str) -> list[str]:
        return [group] if isinstance(group, str) else [group.spell(strength) for strength in self.groups[group]]

    def read(self, attack: str, seeds: Sequence[int]) -> float | None:
        """The mean over those seeds that there are; None without any."""
        known = [self.profile.read(self.rule, attack, seed, self.records) for seed in seeds]
        values = [value for value in known if value is not None]
        return statistics.fmean(values) if values else None

    def find_near(self, seeds: Sequence[int]) -> list[tuple[Family | str, str, float]]:
        """Each group whose worst attack is near the rule's worst, with that attack and its mean; the control too."""
        worst = {}
        for group in self.groups:
            known = {a: mean for a in self.list_attacks(group) if (mean := self.read(a, seeds)) is not None}
            if known:
                attack = min(known, key=lambda a: known[a])
                worst[group] = attack, known[attack]
        least = min((mean for _, mean in worst.values()), default=0.0)
        return [(g, attack, mean) for g, (attack, mean) in worst.items() if mean <= least + NEAR or g == CONTROL]

    def look_closer(self) -> list[tuple[Family, float]]:
        """More strengths of the families near the worst, as long as there is something left to look for."""
        seeds = self.profile.seeds[:1]
        found = []
        for group, _, mean in self.find_near(seeds):
            if isinstance(group, Family) and mean > LOST:
                values = {s: v for s in self.groups[group] if (v := self.read(group.spell(s), seeds)) is not None}
                found += [(group, strength) for strength in halve(self.groups[group], values)]
        return found

    def confirm(self) -> list[str]:
        """The attacks that all seeds are wanted of."""
        return [attack for _, attack, _ in self.find_near(self.profile.seeds)]


def halve(strengths: Sequence[float], values: Mapping[float, float]) -> list[float]:
    """Strengths halfway, in ratio, from the worst to its neighbours; beyond the end where the worst lies there.

    >>> halve([0.25, 1.0, 4.0], {0.25: 90.0, 1.0: 60.0, 4.0: 80.0})
    [0.5, 2.0]
    >>> halve([0.25, 1.0, 4.0], {0.25: 90.0, 1.0: 80.0, 4.0: 60.0})
    [2.0, 8.0]
    """
    known = sorted(values)
    if len(known) < 2:
        return []
    at = min(range(len(known)), key=lambda k: values[known[k]])
    worst = known[at]
    before = known[at - 1] if at else worst * worst / known[1]
    after = known[at + 1] if at + 1 < len(known) else worst * worst / known[-2]
    middles = [_shorten((worst * other) ** 0.5) for other in (before, after)]
    return [s for s in middles if all(max(s / t, t / s) > CLOSE for t in strengths)]


def _shorten(value: float) -> float:
    """To three digits, so that a strength can be read and typed."""
    return float(f"{value:.3g}")


def perform(
    profile: Profile,
    store: Path,
    options: Options,
    *,
    watch: Callable[[], Watcher] = Watcher,
    say: Callable[[str], object] = print,
) -> Summary:
    """Do the runs of a profile, step by step, that the store has no result of; the summary of all steps together."""
    total, asked, step = Summary(0, 0), set[str](), 0
    while True:
        records = Store(store).read().records
        # A run that failed before is done again, but once a call.
        runs = propose(profile, {k: record for k, record in records.items() if record["status"] == "ok" or k in asked})
        if not runs or total.stopped:
            return total
        asked |= {run.key for run in runs}
        step += 1
        say(f"step {step}: {len(runs)} run{'s' * (len(runs) > 1)}")
        total = _join(total, sweep(runs, store, options=options, watcher=watch()))


def _join(one: Summary, other: Summary) -> Summary:
    return Summary(
        total=one.total + other.total,
        before=one.before + other.before,
        ran=one.ran + other.ran,
        failed=[*one.failed, *other.failed],
        diverged=[*one.diverged, *other.diverged],
        notes=[*one.notes, *other.notes],
        seconds=one.seconds + other.seconds,
        stopped=other.stopped,
    )


def place_store(task: str, *, quick: bool = False, given: str | Path | None = None) -> Path:
    """Where a profile's records go: what was given, else results/profile where there is a results folder, else runs.

    >>> place_store("digits", quick=True).as_posix()
    'runs/profile/digits.quick.jsonl'
    """
    if given is not None:
        return Path(given)
    folder = Path("results/profile") if Path("results").is_dir() and not quick else Path("runs/profile")
    return folder / f"{task.split('(')[0]}{'.quick' if quick else ''}.jsonl"
