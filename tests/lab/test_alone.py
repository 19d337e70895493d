"""`python -m robagg.lab`, `.paper` and `.profile` need torch and numpy alone, and take the options of `robagg`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import robagg
from lab.sharing import EXAMPLES
from robagg.cli.app import app
from robagg.lab import load
from robagg.lab.__main__ import sweep
from robagg.lab.command_line import Command, list_options
from robagg.paper.__main__ import paper
from robagg.profile.__main__ import profile

BLOCK = """
import runpy, sys
for name in ("typer", "rich", "click", "matplotlib", "sklearn", "pooch", "tqdm", "ray", "pandas", "flwr", "scipy"):
    sys.modules[name] = None
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__")
"""
RESULTS = Path(__file__).parents[2] / "results" / "paper"


def start(*command: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    home = str(Path(robagg.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": home}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=120, cwd=folder
    )


def test_a_sweep_with_torch_and_numpy_alone(tmp_path: Path) -> None:
    store = tmp_path / "runs.jsonl"
    file = tmp_path / "a.toml"
    file.write_text("task = 'blobs'\nrules = ['tq', 'cm']\nattacks = 'lf'\nf = 3\nsettings.rounds = 3\n")
    plugin = str(EXAMPLES / "plugins" / "my_task.py")
    command = [
        sys.executable,
        "-c",
        BLOCK,
        "robagg.lab",
        str(file),
        "--store",
        str(store),
        "--plugin",
        plugin,
        "--device",
        "cpu",
    ]
    done = start(*command)
    assert done.returncode == 0, done.stderr
    assert "2 runs: 2 done" in done.stdout
    assert len(load(store)) == 2


def test_the_paper_beside_its_numbers_with_torch_and_numpy_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BLOCK, "robagg.paper", "table3", "--no-run", "--store"]
    done = start(*command, str(RESULTS / "table3.jsonl"), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "432 runs. The paper's means are in brackets." in done.stdout
    assert not [*tmp_path.iterdir()]
    done = start(*command, str(RESULTS / "table3.jsonl"), "--out", "page", folder=tmp_path)
    assert sorted(path.name for path in (tmp_path / "page").iterdir()) == ["table3.md", "table3.tex"]


def test_a_profile_with_torch_and_numpy_alone(tmp_path: Path) -> None:
    plugin = str(EXAMPLES / "plugins" / "my_task.py")
    command = [
        sys.executable,
        "-c",
        BLOCK,
        "robagg.profile",
        "krum",
        "tq",
        "--task",
        "blobs",
        "--f",
        "3",
        "--rho",
        "0.2",
    ]
    command += ["--rounds", "3", "--families", "bf", "--no-plain", "--steps", "0", "--seeds", "1", "--plugin", plugin]
    done = start(*command, "--store", str(tmp_path / "runs.jsonl"), "--device", "cpu")
    assert done.returncode == 0, done.stderr
    assert "worst case by rule" in done.stdout
    assert len(load(tmp_path / "runs.jsonl")) == 2 * (1 + 3 * 5)


@pytest.mark.parametrize(("name", "command"), [("sweep", sweep), ("paper", paper), ("profile", profile)])
def test_the_installed_command_has_the_bare_ones_options(name: str, command: Command) -> None:
    installed = {p.name: p for p in typer.main.get_command(app).commands[name].params}  # type: ignore[attr-defined]
    bare = {option.name: option for option in list_options(command)}
    assert list(installed) == list(bare)
    for option in bare.values():
        known = installed[option.name]
        assert known.help == option.help and known.required == option.required
        assert option.required or known.default == option.default
        assert option.required or option.flag in known.opts
