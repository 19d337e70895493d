"""What takes its time shows that it lives, and takes as many threads as it is given."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from typer.testing import CliRunner

from report.journals import fill_journal
from report.records import fill_large
from robagg.cli.app import app

TERMINAL = {"FORCE_COLOR": "1", "TERM": "xterm"}
"""By which rich takes its output for a terminal."""
APART: dict[str, Any] = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}
"""What parts the error output from the rest, before click 8.2."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    fill_large(folder / "runs.jsonl", 6)
    fill_journal(folder / "rounds.jsonl", 3, 5)
    return folder


@pytest.mark.parametrize(
    ("words", "sign"),
    [
        (("show", "runs.jsonl"), "reading"),
        (("show", "rounds.jsonl"), "reading"),
        (("plot", "runs.jsonl", "-o", "figure.png"), "drawing"),
        (("report", "runs.jsonl", "-o", "page.html", "--no-labels"), "writing"),
        (("check", "runs.jsonl"), "checking"),
        (("verify", "rounds.jsonl"), "checking"),
        (("data", "split", "digits"), "loading digits"),
        (("paper", "fig1", "--quick"), "computing fig1"),
        (("doctor",), "testing"),
    ],
)
def test_on_a_terminal_it_is_said_what_goes_on(words: tuple[str, ...], sign: str, files: Path) -> None:
    names = [str(files / word) if "." in word else word for word in words]
    shown = CliRunner(**APART).invoke(app, names, env=TERMINAL)
    assert shown.exit_code == 0, shown.output
    assert sign in shown.stderr
    plain = CliRunner(**APART).invoke(app, names, env={"FORCE_COLOR": None, "TTY_COMPATIBLE": "0"})
    assert plain.exit_code == 0 and sign not in plain.stderr, "a file gets no spinner"


def test_every_command_that_computes_takes_a_number_of_threads() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    with_threads = {name for name, command in commands.items() if any(p.name == "threads" for p in command.params)}
    reading = {"show", "check", "verify", "watch", "plot", "report", "playground", "list", "data"}
    assert with_threads == set(commands) - reading


def test_the_number_of_threads_is_taken() -> None:
    before = torch.get_num_threads()
    try:
        shown = CliRunner(**APART).invoke(app, ["doctor", "--threads", "1"])
        assert "torch uses 1 of" in shown.output
        assert CliRunner().invoke(app, ["doctor", "--threads", "0"]).exit_code == 2
    finally:
        torch.set_num_threads(before)
