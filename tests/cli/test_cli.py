"""The commands as people type them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from robagg.attacks import attacks
from robagg.cli.app import app
from robagg.rule import Rule, stages

COMMANDS = (
    "demo",
    "run",
    "sweep",
    "show",
    "certify",
    "paper",
    "report",
    "playground",
    "list",
    "data get",
    "data split",
)


def call(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return str(result.output)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_page_has_an_example(command: str) -> None:
    said = call(*command.split(), "--help")
    assert f"robagg {command}" in said.replace("Usage: root", "")


def test_list_names_every_rule_and_every_attack() -> None:
    rules = {entry["name"] for entry in json.loads(call("list", "rules", "--json"))}
    assert rules == {name for name, cls in stages.classes().items() if issubclass(cls, Rule)}
    found = {entry["name"]: entry for entry in json.loads(call("list", "attacks", "--json"))}
    assert set(found) == set(attacks.classes())
    assert found["ipm"]["parameters"] == {"c0": None}
    assert "digits" in call("list", "tasks")


def test_run_gives_the_same_numbers_twice() -> None:
    words = ("run", "--task", "digits", "--rule", "nnm >> tq", "--attack", "ga", "--rounds", "12", "--json")
    first, second = (json.loads(CliRunner().invoke(app, list(words)).stdout) for _ in range(2))
    assert first.pop("seconds") > 0
    second.pop("seconds")
    assert first == second
    assert first["rounds"] == 12


def test_run_tells_people_what_happened() -> None:
    said = call("run", "--task", "digits", "--rule", "cm", "--attack", "lf", "--rounds", "5", "--device", "cpu")
    assert "accuracy" in said
    assert "weight given: honest" in said


def test_demo_shows_the_table_and_draws_the_picture(tmp_path: Path) -> None:
    picture = tmp_path / "demo.png"
    said = call("demo", "--rounds", "3", "--workers", "1", "--picture", str(picture))
    for word in ("TQ", "Mean", "IPM", "worst case", "An attacker picks the lie that hurts most"):
        assert word in " ".join(said.split())
    assert picture.read_bytes().startswith(b"\x89PNG")


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
        (("run", "--f", "11"), "n >= 2f+1"),
        (("run", "--device", "cuda:7"), "no GPU"),
        (("run", "--rho", "2"), "rho must lie in"),
        (("run", "--task", "mnist", "--data", "/nowhere"), "robagg data get mnist"),
    ],
)
def test_what_a_user_got_wrong_is_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    done = subprocess.run([sys.executable, "-m", "robagg", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert sentence in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_the_version_is_told() -> None:
    assert call("--version").startswith("robagg 0.")
