"""The commands as people type them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lab.sharing import EXAMPLES
from robagg._core.rule import Rule, stages
from robagg.attacks import attacks
from robagg.cli.app import app, run_app
from robagg.lab.plugins import forget

COMMANDS = (
    "check",
    "demo",
    "doctor",
    "run",
    "sweep",
    "show",
    "aggregate",
    "verify",
    "replay",
    "watch",
    "worst-case",
    "paper",
    "plot",
    "report",
    "playground",
    "list",
    "data get",
    "data split",
)

PLUGIN = EXAMPLES / "plugins" / "my_rule.py"
BROKEN = """
from dataclasses import dataclass, replace
from robagg.tasks.digits import Digits

@dataclass(frozen=True)
class Broken(Digits):
    def load(self, root=None):
        data = super().load(root)
        return replace(data, train_x=data.train_x * float("nan"))
"""
STRONG = """
from dataclasses import dataclass
from robagg.attacks.base import Attack

@dataclass(frozen=True)
class Strong(Attack):
    strength: float

    def craft(self, view, state):
        return view.send(-self.strength * view.mean), state
"""


def call(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return str(result.output)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_page_has_an_example(command: str) -> None:
    said = call(*command.split(), "--help")
    assert f"robagg {command}" in said.replace("Usage: root", "")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("paper", "list, or one of fig1"),
        ("sweep", "the sweep, in TOML"),
        ("show", "a store, or a journal"),
        ("worst-case", "A rule or a pipeline"),
        ("list", "what to list"),
    ],
)
def test_help_says_what_an_argument_is(command: str, words: str) -> None:
    assert words in " ".join(call(command, "--help").split())


def test_list_names_every_rule_and_every_attack() -> None:
    rules = {entry["name"] for entry in json.loads(call("list", "rules", "--json"))}
    assert rules == {name for name, cls in stages.classes().items() if issubclass(cls, Rule)}
    found = {entry["name"]: entry for entry in json.loads(call("list", "attacks", "--json"))}
    assert set(found) == set(attacks.classes())
    assert found["ipm"]["parameters"] == {"c0": None, "jitter": 0.0}
    assert "digits" in call("list", "tasks")


def test_run_gives_the_same_numbers_twice() -> None:
    words = ("run", "--task", "digits", "--rule", "nnm >> tq", "--attack", "ga", "--rounds", "12", "--json")
    # Before click 8.2 a runner's stdout has stderr's lines in front.
    first, second = (json.loads(CliRunner().invoke(app, list(words)).stdout.splitlines()[-1]) for _ in range(2))
    assert first.pop("seconds") > 0
    second.pop("seconds")
    assert first == second
    assert first["rounds"] == 12


def test_run_tells_people_what_happened() -> None:
    said = call("run", "--task", "digits", "--rule", "cm", "--attack", "lf", "--rounds", "5", "--device", "cpu")
    assert "accuracy" in said
    assert "weight given: honest" in said


def test_run_tells_the_weights_of_those_who_were_asked() -> None:
    said = call("run", "--rule", "mean", "--share", "0.5", "--f", "2", "--rounds", "20", "--device", "cpu")
    honest, byzantine = (float(found) for found in re.findall(r"(?:honest|Byzantine) ([\d.]+)%", said))
    assert honest + byzantine == pytest.approx(100, abs=0.2)


def test_run_tells_why_a_run_stopped_in_its_first_round(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text(BROKEN)
    said = call(
        "run", "--task", "broken", "--rule", "cm", "--f", "1", "--n", "5", "--device", "cpu", "--plugin", str(path)
    )
    assert "stopped in round 0" in " ".join(said.split()) and "weight given" not in said


def test_list_tells_what_a_parameter_must_be_given(tmp_path: Path) -> None:
    path = tmp_path / "strong.py"
    path.write_text(STRONG)
    (found,) = (
        e for e in json.loads(call("list", "attacks", "--json", "--plugin", str(path))) if e["name"] == "strong"
    )
    assert found["parameters"] == {"strength": "required"}
    assert "strength='required'" in " ".join(call("list", "attacks", "--plugin", str(path)).split())


def test_demo_shows_the_table_and_draws_the_picture(tmp_path: Path) -> None:
    picture = tmp_path / "new" / "demo.png"
    said = call("demo", "--rounds", "3", "--workers", "1", "--picture", str(picture))
    for word in ("TQ", "Mean", "IPM", "worst case", "An attacker picks the attack that hurts most"):
        assert word in " ".join(said.split())
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_list_run_and_worst_case_know_a_rule_of_ones_own() -> None:
    own = ("--plugin", str(PLUGIN))
    assert "nearmedian" in {entry["name"] for entry in json.loads(call("list", "rules", "--json", *own))}
    forget(PLUGIN)
    assert "nearmedian" in call("run", "--rule", "nearmedian", "--rounds", "2", "--device", "cpu", *own)
    forget(PLUGIN)
    assert "worst ratio found" in call("worst-case", "nearmedian", "--n", "5", "--budget", "500", *own)
    shown = call(
        "worst-case", "nearmedian", "--n", "8", "--f", "2", "--d", "6", "--budget", "60", "--honest", "all", *own
    )
    assert all(kind in shown for kind in ("gaussian", "skewed", "clustered", "quarter", "half"))


def test_list_shows_brackets_of_a_docstring(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(PLUGIN.read_text().replace("class NearMedian", "class Mine").replace("The mean", "[a] [/b]"))
    assert "[a] [/b]" in " ".join(call("list", "rules", "--plugin", str(path)).split())


@pytest.mark.parametrize("name", ["fig1", "example1", "theorem2"])
def test_a_dry_run_of_what_trains_nothing_computes_and_writes_nothing(name: str, tmp_path: Path) -> None:
    assert "trains nothing" in call("paper", name, "--dry-run", "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_data_split_shows_who_holds_what(tmp_path: Path) -> None:
    picture = tmp_path / "split.png"
    said = call("data", "split", "digits", "--n", "5", "--f", "1", "--picture", str(picture))
    assert "client" in said
    assert picture.exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("run", "--rule", "tqq"), "did you mean 'tq'"),
        (("run", "--rule", "tq(g=1)"), "unknown parameter of tq 'g'"),
        (("run", "--attack", "imp"), "unknown attack 'imp'"),
        (("run", "--f", "11"), "n must be at least 2f+1"),
        (("run", "--rule", "tq[/x]"), "got 'tq[/x]'"),
        (("run", "--rule", "[red]tq"), "got '[red]tq'"),
        (("run", "--device", "cuda:7"), "no GPU"),
        (("run", "--device", "foo"), "device must be auto, cpu, cuda or one of several, such as cuda:1, got 'foo'"),
        (("run", "--device", "mps"), "device must be cpu or cuda for training, got 'mps'"),
        (("run", "--rate", "1e300"), "rate must be a number above 0 that float32 holds, got 1e+300"),
        (("paper", "table3", "--quick", "--device", "cuda"), "--device must be auto or cpu for a quick look, got cuda"),
        (("run", "--rho", "2"), "rho must lie in"),
        (("run", "--task", "mnist", "--data", "/nowhere"), "robagg data get mnist"),
        (("show", "a[/b]"), "there is no store and no journal at a[/b]"),
        (("show", "folder"), "is a directory"),
        (("report", "folder"), "is a directory"),
        (("playground", "-o", "folder"), "Is a directory"),
        (("run", "--plugin", "import.py"), "cannot import name 'nothing'"),
        (("run", "--plugin", "syntax.py"), "syntax.py is not valid Python: invalid syntax (syntax.py, line 2)"),
        (("run", "--plugin", "misspelt.py"), "NearMedian does not define weights"),
        (("run", "--rho", "0.9", "--split", "iid"), "--split or --rho must be given, not both"),
        (("worst-case", "cm", "--tau", "true"), "rule must be TQ or Huber, without pre-aggregators"),
        (("worst-case", "cm", "--honest", "odd"), "honest rows must be one of gaussian"),
        (("worst-case", "tq", "--honest", "half", "--tau", "true"), "--honest must come without --tau and --start"),
        (
            ("worst-case", "cm", "--n", "1000000000"),
            "n times d must be at most 100,000 in a search, got n=1,000",
        ),
        (("worst-case", "cm", "--honest", "half", "--n", "1000000000"), "n times d must be at most 100,000"),
        (("run", "--seed", "-1", "--rounds", "1"), "seed must be a whole number from 0 on, got -1"),
        (("worst-case", "cm", "--start", "far"), "rule must be an iterative rule"),
        (("paper", "fig1", "--no-run", "--seeds", "2"), "fig1 trains nothing: leave out --seeds, --no-run"),
        (("paper", "theorem2", "--dry-run", "--store", "x.jsonl"), "theorem2 trains nothing: leave out --store"),
    ],
)
def test_what_a_user_got_wrong_is_one_sentence(words: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "import.py").write_text("from robagg import nothing\n")
    (tmp_path / "syntax.py").write_text("\ndef\n")
    (tmp_path / "misspelt.py").write_text(PLUGIN.read_text().replace("def weights", "def weight"))
    command = [sys.executable, "-m", "robagg", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_an_error_keeps_the_name_of_an_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        raise ModuleNotFoundError("Ray is not installed; pip install 'robagg[ray]' brings it")

    monkeypatch.setattr("robagg.cli.app.app", fail)
    with pytest.raises(SystemExit):
        run_app()
    assert capsys.readouterr().err == "error: Ray is not installed; pip install 'robagg[ray]' brings it\n"


def test_the_version_is_told() -> None:
    assert call("--version").startswith("robagg 0.")


def test_an_unknown_data_set_is_told_with_all_that_can_be_fetched() -> None:
    with pytest.raises(ValueError, match=r"did you mean 'agnews'\?\); there are: .*mnist, agnews"):
        CliRunner().invoke(app, ["data", "get", "agnewz"], catch_exceptions=False)
