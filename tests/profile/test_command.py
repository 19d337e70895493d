"""`robagg profile`: runs, tables, and a store that `show` reads by strength."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.sharing import EXAMPLES
from robagg.lab import Store, load
from robagg.lab.command_line import Screen, read_arguments
from robagg.lab.plugins import forget
from robagg.profile.__main__ import main, profile
from robagg.report import tabulate

PLUGIN = EXAMPLES / "plugins" / "my_task.py"
SMALL = ("--task", "blobs", "--f", "3", "--rounds", "3", "--families", "bf", "--device", "cpu", "--plugin", str(PLUGIN))


@pytest.fixture(autouse=True)
def _forget() -> object:
    yield
    forget(PLUGIN)


def test_a_profile_runs_shows_and_is_not_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, out = tmp_path / "blobs.jsonl", tmp_path / "page"
    words = ["krum", "nnm >> tq", *SMALL, "--no-plain", "--steps", "1", "--seeds", "2", "--store", str(store)]
    assert main([*words, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "step 1: 32 runs" in said
    assert "worst case by rule" in said
    assert {path.name for path in out.iterdir()} == {"blobs.md", "bf.png", "bf-0.9.png", "bf-0.99.png"}
    count = len(load(store))
    assert count > 32
    assert main(words) == 0
    assert "step" not in capsys.readouterr().out
    assert len(load(store)) == count
    assert main([*words, "--no-run"]) == 0
    tables = tabulate(load(store), columns="bf.scale")
    assert {0.1, 0.3, 1.0, 3.0, 10.0} <= set(tables[0].columns)
    assert {dict(table.group)["attack"] for table in tables} == {"bf", "bf(momentum=0.9)", "bf(momentum=0.99)"}


def test_momentum_and_rate_are_those_of_every_run(tmp_path: Path) -> None:
    store = tmp_path / "blobs.jsonl"
    words = ["krum", *SMALL, "--no-plain", "--steps", "0", "--seeds", "1", "--store", str(store)]
    assert main([*words, "--momentum", "0.5", "--rate", "0.25"]) == 0
    settings = [record["spec"]["settings"] for record in Store(store).read().records.values()]
    assert settings == [{"rounds": 3, "momentum": 0.5, "rate": 0.25}] * len(settings)


def test_a_dry_run_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "blobs.jsonl"
    assert main(["krum", *SMALL, "--dry-run", "--store", str(store)]) == 0
    assert "32 runs, 32 to do" in capsys.readouterr().out
    assert not store.exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("tq", "--quick", "--task", "mnist"), "a quick look must be at digits on the CPU, got --task mnist"),
        (("tq", "--families", "alie,imp"), "unknown family 'imp'"),
        (("tqq",), "unknown rule or pre-aggregator 'tqq'"),
        (("tq", "--no-run"), "there are no runs of this profile in"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    words: tuple[str, ...],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert sentence in capsys.readouterr().err


def test_rules_and_numbers_are_read() -> None:
    given = read_arguments(profile, ["tq", "nnm >> tq", "--rho", "0.8", "--seeds", "5"], "profile")
    assert given["rules"] == ["tq", "nnm >> tq"]
    assert (given["rho"], given["seeds"], given["steps"]) == (0.8, 5, None)
    assert Screen().gap == " "
