"""The search of a profile: coarse, then closer where a family is near the worst, then all seeds where it counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from robagg._core.registry import split_call
from robagg.attacks import parse
from robagg.lab import Run
from robagg.profile import FAMILIES, PLAIN, Profile, gather, propose
from robagg.profile.families import choose_families
from robagg.profile.plan import halve

ALIE, BF = choose_families(["alie"])[0], choose_families(["bf"])[0]
SMALL = Profile(("tq", "krum"), families=(ALIE, BF), plain=("none", "lf"), seeds=(0, 1, 2), steps=3)


def strength_of(run: Run) -> float:
    thing = parse(run.attack)
    return float(getattr(thing, "z", getattr(thing, "scale", 1.0)))


def dip(run: Run, family: str, at: float, depth: float) -> float:
    """90 but for a dip of one family, a factor of two wide."""
    if not run.attack.startswith(family):
        return 90.0
    return 90.0 - depth * max(0.0, 1 - abs(math.log2(strength_of(run) / at)))


def test_all_strengths_and_attacks_are_run_on_the_first_seed_first(complete: Any) -> None:
    _, steps = complete(SMALL, lambda run: 90.0)
    first = steps[0]
    assert {run.seed for run in first} == {0}
    assert len(first) == 2 * (5 + 5 + 2)
    assert {run.attack for run in first} >= {"alie(z=0.25)", "alie(z=4.0)", "bf", "bf(scale=0.1)", "none", "lf"}


@pytest.mark.parametrize("at", [0.3, 0.7, 1.4, 3.0])
def test_a_dip_between_the_strengths_tried_first_is_found(complete: Any, at: float) -> None:
    records, _ = complete(SMALL, lambda run: dip(run, "alie", at, 60.0))
    worst = gather(SMALL, records).find_worst_of_all("tq")
    assert worst is not None
    assert worst.strength == pytest.approx(at, rel=0.12)
    assert worst.mean < 42
    assert len(worst.cell.values) == 3


def test_runs_are_spent_where_a_family_is_near_the_worst(complete: Any) -> None:
    records, _ = complete(SMALL, lambda run: dip(run, "alie", 1.4, 60.0) if "tq" in run.rule else 90.0)
    found = gather(SMALL, records)
    assert len(found.points["tq", "alie"]) > 5
    assert len(found.points["tq", "bf"]) == 5
    assert all(len(point.cell.values) == 1 for point in found.points["tq", "bf"])
    # Where nothing hurts all families are near the worst.
    assert len(found.points["krum", "bf"]) > 5


def test_where_a_rule_is_lost_nothing_is_left_to_look_for(complete: Any) -> None:
    records, steps = complete(SMALL, lambda run: 10.0 if run.attack == "alie(z=1.0)" else 90.0)
    found = gather(SMALL, records)
    assert len(found.points["tq", "alie"]) == 5
    assert len(steps) == 2
    assert {run.attack for run in steps[1]} == {"alie(z=1.0)", "none"}
    assert {run.seed for run in steps[1]} == {1, 2}


def test_what_other_seeds_show_to_be_worse_is_run_on_all_of_them(complete: Any) -> None:
    """On the first seed z=1 is worst by chance: on the others it is harmless, and z=2 is not."""

    def truth(run: Run) -> float:
        if run.attack == "alie(z=1.0)":
            return 10.0 if run.seed == 0 else 90.0
        return 40.0 if run.attack == "alie(z=2.0)" else 90.0

    records, _ = complete(SMALL, truth)
    worst = gather(SMALL, records).find_worst_of_all("tq")
    assert worst is not None
    assert (worst.attack, worst.cell.values) == ("alie(z=2.0)", (40.0, 40.0, 40.0))


def test_the_worst_case_has_all_seeds_and_no_other_mean_is_below_it(complete: Any) -> None:
    def truth(run: Run) -> float:
        return 30 + 60 * (int(run.key[:6], 16) / 16**6)

    records, _ = complete(SMALL, truth)
    found = gather(SMALL, records)
    for rule in SMALL.rules:
        worst = found.find_worst_of_all(rule)
        assert worst is not None
        assert len(worst.cell.values) == 3
        others = [
            p.mean
            for (r, name), points in found.points.items()
            if (r, name) != (rule, "none")
            for p in points
            if r == rule
        ]
        assert worst.mean == min(others)


def test_a_profile_that_was_stopped_goes_on_where_it_was(complete: Any) -> None:
    truth: Callable[[Run], float] = lambda run: dip(run, "alie", 0.7, 50.0)  # noqa: E731
    records, steps = complete(SMALL, truth)
    half = dict(list(records.items())[: len(steps[0]) // 2])
    assert [run.key for run in propose(SMALL, half)] == [run.key for run in steps[0] if run.key not in half]
    again = dict(half)
    while runs := propose(SMALL, again):
        again |= {run.key: records[run.key] for run in runs}
    assert again.keys() == records.keys()


def test_runs_that_failed_or_diverged_do_not_stop_it(complete: Any) -> None:
    def truth(run: Run) -> float | None:
        return None if run.attack == "lf" else -1.0 if run.attack == "bf(scale=10.0)" else 80.0

    records, _ = complete(SMALL, truth)
    worst = gather(SMALL, records).find_worst_of_all("krum")
    assert worst is not None
    assert (worst.attack, worst.mean, worst.cell.diverged) == ("bf(scale=10.0)", 0.0, 3)


def test_halving_never_comes_back_to_a_strength() -> None:
    strengths = [0.25, 0.5, 1.0]
    for _ in range(8):
        more = halve(strengths, {s: abs(math.log(s / 0.6)) for s in strengths})
        assert all(s not in strengths for s in more)
        strengths = sorted([*strengths, *more])
    assert min(strengths, key=lambda s: abs(math.log(s / 0.6))) == pytest.approx(0.6, rel=0.06)
    assert halve([1.0], {1.0: 50.0}) == halve([], {}) == []


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_each_family_spells_attacks_that_differ_in_their_strength_alone(family: Any) -> None:
    assert list(family.strengths) == sorted(family.strengths)
    for strength in family.strengths:
        thing = parse(family.spell(strength))
        assert getattr(thing, family.parameter) == strength
        assert thing.name() == family.attack
        assert family.parameter not in split_call(f"{family.attack}({family.rest})", "attack")[1]


def test_names_of_families_are_told_apart_and_attacks_without_strength_are_known() -> None:
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
    assert len({str(parse(text)) for text in PLAIN}) == len(PLAIN)
    assert [f.name for f in choose_families(["IPM"])] == ["ipm", "ipm-0.12", "ipm-0.5", "ipm-1"]
    with pytest.raises(ValueError, match="unknown family 'imp'"):
        choose_families(["imp"])
