"""What a user's own file defines takes part, and editing it concerns the runs that use it alone."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import robagg
from lab.sharing import EXAMPLES
from robagg._core.rule import stages
from robagg.lab import Options, Run, Store, execute, grid, load, read_sweep, sweep
from robagg.lab.estimation import estimate
from robagg.lab.loading import keep_newest
from robagg.lab.plugins import GROUP, find_plugins, forget, list_plugins, load_entry_points, load_plugin
from robagg.report.tables import tabulate

RULE = """
from dataclasses import dataclass
from robagg.rules.cm import CM

@dataclass(frozen=True)
class Mine(CM):
    '''A rule of my own.'''
"""


WIDE = """
from dataclasses import dataclass, replace
import torch
from robagg.tasks.digits import Digits

@dataclass(frozen=True)
class Wide(Digits):
    weights: str = "float64"
    inputs: str = "float64"

    def load(self, root=None):
        found, dtype = super().load(root), getattr(torch, self.inputs)
        return replace(found, train_x=found.train_x.to(dtype), test_x=found.test_x.to(dtype))

    def build(self, dataset, seed):
        return super().build(dataset, seed).to(getattr(torch, self.weights))
"""

ATTACK = """
from dataclasses import dataclass
from robagg.attacks import BF

@dataclass(frozen=True)
class Halves(BF):
    parts: int = 2
"""


FAILING = """
from dataclasses import dataclass
import torch
import robagg as ra
from robagg.splits import IID
from robagg.tasks.digits import Digits

@dataclass(frozen=True)
class BadRule(ra.GramRule):
    f: ra.F = None

    def weights(self, sketch):
        return torch.linalg.cholesky(-sketch.gram)

@dataclass(frozen=True)
class BadAttack(ra.Attack):
    def craft(self, view, state):
        return view.honest.mul_(2)[:view.f], state

@dataclass(frozen=True)
class BadSplit(ra.Split):
    answer: str = "few"

    def deal(self, labels, h, generator):
        whole = torch.arange(len(labels)).chunk(h)
        return {"few": list(whole[1:]), "empty": [whole[0], *(w[:0] for w in whole[1:])], "none": None}[self.answer]

@dataclass(frozen=True)
class BadTask(Digits):
    answer: str = "load"

    def load(self, root=None):
        return super().load(root) if self.answer != "load" else {}["gone"]

    def build(self, dataset, seed):
        return None
"""


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"rule": "badrule(f=1)"}, "badrule(f=1): weights raised _LinAlgError: "),
        ({"attack": "badattack"}, "badattack: craft must not change view.honest, which is what honest clients send"),
        ({"split": "badsplit"}, "badsplit: deal must return a list of 6 shards, got 5 shards"),
        (
            {"split": "badsplit(answer='none')"},
            ": deal must return a list of 6 shards, got None",
        ),
        (
            {"split": "badsplit(answer='empty')"},
            "must be an int64 tensor of a sample or more, got torch",
        ),
        ({"split": "badsplit(answer='x')"}, "badsplit(answer='x'): deal raised KeyError: 'x'"),
        ({"task": "badtask"}, "badtask: load raised KeyError: 'gone'"),
        ({"task": "badtask(answer='build')"}, "build must return a torch.nn.Module, got None"),
    ],
)
def test_what_a_plugin_gets_wrong_is_a_sentence_with_its_name(tmp_path: Path, spec: dict[str, str], words: str) -> None:
    path = tmp_path / "failing.py"
    path.write_text(FAILING)
    load_plugin(path)
    try:
        whole = {"rule": "cm", "attack": "ipm"} | spec
        record = execute(Run(**whole, n=8, f=2, settings={"rounds": 2}), device="cpu")  # type: ignore[arg-type]
        assert record["status"] == "failed"
        assert record["error"].startswith("PluginError: ") and words in record["error"], record["error"]
    finally:
        forget(path)


@pytest.fixture
def rule(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "my_rule.py"
    path.write_text(RULE)
    yield path
    forget(path)


def test_a_rule_and_a_task_from_files_take_part_and_editing_the_rule_runs_its_cells_again(
    tmp_path: Path, rule: Path, blobs: str
) -> None:
    file, store = tmp_path / "mine.toml", tmp_path / "runs.jsonl"
    file.write_text('task = "blobs"\nrules = ["mine", "tq"]\nattacks = ["ipm", "lf"]\nf = 3\nsettings.rounds = 5\n')

    def go(workers: int = 1) -> list[str]:
        before = {record["key"] for record in load(store)} if store.exists() else set()
        wanted = read_sweep(file, plugins=[rule, blobs])
        summary = sweep(wanted.runs, store, options=Options("cpu", plugins=wanted.plugins, workers=workers))
        assert not summary.failed, summary.failed
        return sorted(f"{r['method']} {r['attack']}" for r in load(store) if r["key"] not in before)

    assert go() == ["mine ipm", "mine lf", "tq ipm", "tq lf"]
    assert go() == []
    rule.write_text(RULE + "\n    iterations: int = 3\n")
    assert go(workers=2) == ["mine ipm", "mine lf"]
    assert go() == []
    contents = Store(store).read()
    assert len(contents.records) == 6, "nothing is lost"
    newest = keep_newest(contents)
    assert len(newest.records) == len(load(store)) == 4, "the first source's runs are no more seeds of the second's"
    assert newest.notes == ["2 runs of another source of a plugin left out"]
    cells = [cell for table in tabulate(load(store)) for cell in table.cells.values()]
    assert [len(cell.values) for cell in cells] == [1] * 4


def test_only_runs_that_use_a_name_have_its_hash_in_their_key(rule: Path, blobs: str) -> None:
    load_plugin(rule)
    texts = {"mine": "mine", "chain": "nnm >> mine", "within": "ctma(base='mine')", "other": "tq"}
    before = {name: Run(rule=text, f=3).key for name, text in texts.items()}
    rule.write_text(RULE + "# a word\n")
    load_plugin(rule)
    after = {name: Run(rule=text, f=3).key for name, text in texts.items()}
    assert before["mine"] != after["mine"]
    assert before["chain"] != after["chain"]
    assert before["within"] != after["within"]
    assert before["other"] == after["other"]
    assert set(Run(rule="mine", task="blobs").plugins) == {"Mine", "Blobs"}
    assert Run(rule="tq", attack="mixed(attacks='ipm+lf')").plugins == {}


@pytest.mark.parametrize(
    "attack",
    [
        "mixed('ipm+echo')",
        "varying('echo')",
        "mixed('varying(\"echo\")+ipm')",
        "varying('mixed(\"ipm+echo\")')",
        "varying('varying(\"echo\")')",
    ],
)
def test_an_attack_inside_others_counts(attack: str) -> None:
    path = EXAMPLES / "plugins" / "my_attack.py"
    load_plugin(path)
    try:
        assert set(Run(rule="tq", attack=attack).plugins) == {"Echo"}
    finally:
        forget(path)


def test_a_run_made_before_an_edit_keeps_the_hash_of_what_it_runs(rule: Path) -> None:
    load_plugin(rule)
    run = Run(rule="mine", f=3)
    key = run.key
    rule.write_text(RULE + "# a word\n")
    load_plugin(rule)
    assert run.key == key
    assert Run(rule="mine", f=3).key != key


def test_the_templates_work_together() -> None:
    paths = sorted((EXAMPLES / "plugins").glob("my_*.py"))
    assert [path.stem for path in paths] == ["my_attack", "my_mixer", "my_rule", "my_split", "my_task"]
    try:
        for path in paths:
            load_plugin(path)
        runs = grid(
            tasks="blobs", mixers="shrink(way=0.2)", rules="near-median", attacks="echo(strength=2)",
            splits="unequal", f=3, settings={"rounds": 60},
        )  # fmt: skip
        record = execute(runs[0], device="cpu")
        assert record["status"] == "ok", record.get("traceback")
        assert record["accuracy"] > 80
        assert len(record["plugins"]) == 5
    finally:
        for path in paths:
            forget(path)


def test_a_forgotten_plugin_is_gone(rule: Path) -> None:
    load_plugin(rule)
    assert rule.name in list_plugins()[-1].source
    forget(rule)
    with pytest.raises(ValueError, match="unknown rule"):
        robagg.parse("mine")
    assert robagg.parse("cm")


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        ("x = 1", ValueError, "defines nothing to use: none of its classes derives from Rule"),
        (RULE.replace("Mine", "TQ"), ValueError, "robagg itself has one of that name"),
        (
            RULE + "\n    aliases = ('geometric_median',)",
            ValueError,
            "a rule or .* 'geometricmedian', but robagg itself",
        ),
        (RULE.replace("@dataclass(frozen=True)", ""), ValueError, "must be decorated with @dataclass"),
        ("1/0", ZeroDivisionError, "division"),
        ("def", ValueError, "is not valid Python: invalid syntax"),
    ],
)
def test_a_plugin_that_cannot_be_used_says_why(tmp_path: Path, code: str, error: type[Exception], words: str) -> None:
    path = tmp_path / "bad.py"
    path.write_text(code)
    known = len(list_plugins())
    with pytest.raises(error, match=words):
        load_plugin(path)
    assert len(list_plugins()) == known
    with pytest.raises(FileNotFoundError, match="a plugin is a Python file"):
        load_plugin(tmp_path / "absent.py")


def test_names_that_a_rule_inherits_stay_its_parents(rule: Path) -> None:
    load_plugin(rule)
    assert isinstance(robagg.parse("median"), robagg.CM) and str(robagg.parse("median")) == "cm"
    rule.write_text(RULE + "\n    aliases = ('ours',)")
    load_plugin(rule)
    assert str(robagg.parse("ours")) == "mine"


def test_a_plugin_loaded_here_is_known_to_every_worker(tmp_path: Path, rule: Path) -> None:
    load_plugin(rule)
    runs = grid(rules=["mine", "cm"], f=2, settings={"rounds": 2})
    guess = estimate(runs, tmp_path / "a.jsonl", Options("cpu", workers=2))
    assert len(guess.basis) == 1 and "2 of 2 cells" in guess.basis[0]
    summary = sweep(runs, tmp_path / "a.jsonl", options=Options("cpu", workers=2))
    assert (summary.ran, summary.failed) == (2, [])


def test_a_task_may_have_a_model_of_another_dtype(tmp_path: Path) -> None:
    path = tmp_path / "wide.py"
    path.write_text(WIDE)
    load_plugin(path)
    kinds = ["wide", "wide(inputs='float32')", "wide(weights='float32')"]
    runs = grid(tasks=kinds, rules="cm", f=2, settings={"rounds": 2})
    assert [execute(run, device="cpu").get("error") for run in runs] == [None] * 3


def test_an_attack_may_call_a_field_of_its_own_parts(tmp_path: Path) -> None:
    path = tmp_path / "halves.py"
    path.write_text(ATTACK)
    load_plugin(path)
    assert list(Run(rule="cm", attack="halves(parts=3)", f=2).plugins) == ["Halves"]


def test_two_classes_of_a_plugin_with_one_name_are_refused_whole(tmp_path: Path) -> None:
    path, code = tmp_path / "pair.py", "from dataclasses import dataclass\nfrom robagg.rules import CM\n"
    for name in ("PairA", "PairB"):
        code += f'@dataclass(frozen=True)\nclass {name}(CM):\n    aliases = ("pair",)\n'
    path.write_text(code)
    with pytest.raises(ValueError, match=r"pair\.py defines a .* 'pair', but its PairA has one of that name"):
        load_plugin(path)
    assert not {"paira", "pairb"} & set(stages.classes())
    path.write_text(code.replace('"pair"', '"paired"', 1) + "Another = PairA\n")
    assert load_plugin(path).names == ("paira", "pairb")


def test_two_plugins_with_one_name_are_refused(tmp_path: Path, rule: Path) -> None:
    load_plugin(rule)
    other = tmp_path / "other.py"
    other.write_text(RULE)
    with pytest.raises(ValueError, match=r"my_rule\.py has one of that name"):
        load_plugin(other)


def test_installed_packages_offer_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "robagg_offer.py").write_text(RULE.replace("Mine", "Offered"))
    monkeypatch.syspath_prepend(str(tmp_path))
    points = [
        importlib.metadata.EntryPoint("offer", "robagg_offer", GROUP),
        importlib.metadata.EntryPoint("gone", "robagg_not_there", GROUP),
    ]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda *, group: points if group == GROUP else [])
    with pytest.warns(UserWarning, match="gone = robagg_not_there cannot be used"):
        loaded = load_entry_points()
    try:
        assert [plugin.names for plugin in loaded] == [("offered",)]
        assert find_plugins(robagg.parse("offered", f=2)).keys() == {"Offered"}
    finally:
        from robagg._core.rule import stages
        from robagg.lab import plugins

        stages.remove("offered")
        plugins._loaded.pop("robagg_offer")
        sys.modules.pop("robagg_offer", None)
