"""A run's key covers what can change its result, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from robagg import TQ
from robagg.attacks import IPM
from robagg.lab import Run, grid
from robagg.lab import run as run_module
from robagg.tasks.cifar10 import CIFAR10

BASE: dict[str, Any] = {"rule": "nnm >> tq", "attack": "alie", "f": 6, "settings": {"rounds": 50}}


@pytest.mark.parametrize(
    "other",
    [
        {"rule": "NNM(f=6)>>TQ(iterations=10, f=6)"},
        {"attack": "A-L_IE"},
        {"attack": "alie(z=none)"},
        {"task": "Digits(model='mlp')"},
        {"split": "rho(rho=0.5)"},
        {"n": 20},
        {"settings": {"rounds": 50, "batch": 32, "schedule": []}},
        {"settings": (("rounds", 50),)},
    ],
)
def test_one_run_spelled_differently_has_one_key(other: dict[str, Any]) -> None:
    assert Run(**BASE | other) == Run(**BASE)
    assert Run(**BASE | other).key == Run(**BASE).key


@pytest.mark.parametrize(
    "other",
    [
        {"rule": "nnm >> tq(iterations=9)"},
        {"rule": "nnm >> tq(f=none)"},
        {"rule": "nnm(f=5) >> tq"},
        {"rule": "tq"},
        {"attack": "alie(z=1)"},
        {"attack": "ipm"},
        {"task": "digits(model='logistic')"},
        {"split": "rho(rho=0.6)"},
        {"split": "iid"},
        {"n": 21},
        {"f": 5},
        {"seed": 1},
        {"settings": {"rounds": 51}},
        {"settings": {"rounds": 50, "rate": 0.25}},
        {"settings": {"rounds": 50, "schedule": [[0.5, 0.1]]}},
    ],
)
def test_what_changes_the_result_changes_the_key(other: dict[str, Any]) -> None:
    assert Run(**BASE | other).key != Run(**BASE).key


def test_a_field_that_came_later_leaves_the_keys_before_it() -> None:
    assert run_module.spell(CIFAR10(), full=True) == "cifar10(augment=True)"
    assert run_module.spell(CIFAR10(border="black"), full=True) == "cifar10(augment=True, border='black')"
    stated, mean, black = (
        Run(rule="tq", f=4, task=task) for task in ("cifar10", "cifar10(border='mean')", "cifar10(border='black')")
    )
    assert stated.key == mean.key != black.key


def test_a_setting_that_came_later_leaves_the_keys_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Run(rule="tq")
    assert plain.key == "d3b969a3488ae7a826678184"
    for name, value in (("weight_decay", 0), ("client_optimiser", None), ("server_optimiser", None), ("root", 0)):
        assert Run(rule="tq", settings={name: value}).key == plain.key, name
    later = [{"weight_decay": 0.1}, {"server_optimiser": "adam"}, {"server_optimiser": "adam(lr=1.0)"}, {"root": 9}]
    assert len({run.key for run in [plain, *(Run(rule="tq", settings=one) for one in later)]}) == 5


def test_an_optimiser_has_one_spelling() -> None:
    texts = ("Adam-W(weight_decay=0.1, betas=(0.9, 0.9))", "adamw( betas = (0.9, 0.9), weight_decay=0.1 )")
    runs = {Run(rule="tq", settings={"client_optimiser": text, "momentum": 0}) for text in texts}
    assert len({run.key for run in runs}) == len(runs) == 1
    run = runs.pop()
    assert Run.from_json(run.to_json()) == run
    assert dict(run.settings)["client_optimiser"] == "adamw(betas=(0.9, 0.9), weight_decay=0.1)"


def test_a_function_is_for_tasks_and_not_for_the_settings_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    import dataclasses

    from robagg.tasks import Digits

    with pytest.raises(ValueError, match="schedule must be text or numbers, which a store can hold, got the function"):
        Run(rule="tq", settings={"schedule": lambda t: 0.5})
    plain = Run(rule="tq").key
    keys = []
    for make in (lambda t: 0.5, lambda t: 0.5):
        monkeypatch.setattr(Digits, "settings", dataclasses.replace(Digits.settings, schedule=make))
        run = Run(rule="tq", settings={"rounds": 3})
        assert json.loads(run.to_json())["settings"] == {"rounds": 3}
        keys.append(run.key)
    assert keys[0] == keys[1] != plain, "the source of a plugin's function is in its key"


def test_schedules_are_an_axis_by_name_and_by_points() -> None:
    for schedules, count in (
        ("cosine", 1),
        (["cosine", "linear"], 2),
        ([[0.5, 0.1]], 1),
        ([[[0.5, 0.1]], "linear"], 2),
    ):
        assert len(grid(rules="tq", settings={"schedule": schedules})) == count


def test_whole_numbers_for_floats_are_the_same_run() -> None:
    assert Run(rule="tq", split="rho(rho=1)").key == Run(rule="tq", split="rho(rho=1.0)").key
    one, other = ({"rate": 1, "schedule": [[3, 2]]}, {"rate": 1.0, "schedule": ((3.0, 2.0),)})
    assert Run(rule="tq", settings=one) == Run(rule="tq", settings=other)
    assert Run(rule="tq", settings=one).key == Run(rule="tq", settings=other).key


def test_a_new_results_version_makes_every_key_new(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Run(**BASE).key
    monkeypatch.setattr(run_module, "RESULTS_VERSION", run_module.RESULTS_VERSION + 1)
    assert Run(**BASE).key != before


def test_a_changed_default_of_the_task_makes_the_key_new(monkeypatch: pytest.MonkeyPatch) -> None:
    import dataclasses

    from robagg.tasks import Digits

    before = Run(**BASE).key
    monkeypatch.setattr(Digits, "settings", dataclasses.replace(Digits.settings, rate=0.123))
    assert Run(**BASE).key != before


def test_json_and_back() -> None:
    run = Run(**BASE | {"rule": "tq(f=none)", "settings": {"schedule": [[0.75, 0.1]], "rounds": 7}})
    again = Run.from_json(run.to_json())
    assert again == run
    assert again.key == run.key
    assert again.parts.rule.f is None, "f_max must not become the run's f on the way"
    assert len({run, again}) == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"rule": "tqq"}, "did you mean 'tq'"),
        ({"attack": "ipn"}, "unknown attack"),
        ({"f": 10}, "n must be at least 2f"),
        ({"f": -1}, "f must be a whole number"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"settings": {"round": 3}}, "did you mean 'rounds'"),
        ({"settings": {"rounds": 0}}, "rounds must be a whole number from 1 on, got 0"),
        ({"settings": {"rounds": "3"}}, "rounds must be a whole number from 1 on, got '3'"),
        ({"settings": {"batch": True}}, "batch must be a whole number"),
        ({"settings": {"local_steps": 1.5}}, "local_steps must be a whole number"),
        ({"settings": {"schedule": [0.5, 0.1]}}, "schedule must be .* pairs"),
    ],
)
def test_a_wrong_run_says_what_is_wrong(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Run(**BASE | wrong)


def test_a_grid_has_every_combination_once() -> None:
    runs = grid(
        rules=["tq", "cm"],
        mixers=["", "nnm", "bucketing"],
        attacks=["alie", "ipm", "ipm(c0=9)", "lf"],
        strengths={"alie": {"z": [0.5, 1.0]}, "ipm": {"c0": [1, 3]}},
        rho=[0.2, 1],
        f=[2, 6],
        seeds=range(3),
        settings={"rounds": [10, 20], "schedule": [[0.5, 0.1]]},
    )
    assert len(runs) == 2 * 3 * (2 + 2 + 1 + 1) * 2 * 2 * 3 * 2
    assert len({run.key for run in runs}) == len(runs)
    assert [run.seed for run in runs] == sorted(run.seed for run in runs), "the first seed's tables come first"


def test_objects_are_taken_as_their_texts() -> None:
    assert Run(rule=TQ(), f=6).parts.rule.f is None, "a rule that assumes the most does not get the run's f"
    run = Run(**BASE | {"rule": TQ(f=2), "attack": IPM(c0=2.0)})
    assert run == Run(**BASE | {"rule": "tq(f=2)", "attack": "ipm(c0=2)"})
    assert grid(rules=TQ(f=2), attacks=[IPM(), "lf"], f=2) == grid(rules="tq(f=2)", attacks=["ipm", "lf"], f=2)


def test_a_grid_takes_rules_with_an_f_of_their_own() -> None:
    runs = grid(rules=["tq", "tq(f=none)", "tq(f=9)"], f=6)
    assert [run.parts.rule.f for run in runs] == [6, None, 9]


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ({"rules": ["tq", "TQ"]}, "one run twice"),
        ({"rules": "tq", "f": [6, 10]}, r"cannot be run \(rule='tq'.*f=10"),
        ({"rules": []}, "rule must have at least one value, got none"),
        ({"rules": "tq", "rho": 0.5, "splits": "iid"}, "must not be given both"),
        ({"rules": "tq", "attacks": "lf", "strengths": {"ipm": {"c0": 1}}}, "not among the attacks"),
    ],
)
def test_a_grid_leaves_nothing_out_silently(axes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        grid(**axes)
