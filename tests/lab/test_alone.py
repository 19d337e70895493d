"""`python -m robagg.lab` needs torch and numpy alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import robagg
from lab.sharing import EXAMPLES
from robagg.lab import load

BLOCK = """
import runpy, sys
for name in ("typer", "rich", "click", "matplotlib", "sklearn", "pooch", "tqdm", "ray", "pandas", "flwr", "scipy"):
    sys.modules[name] = None
sys.argv = ["robagg.lab", *sys.argv[1:]]
runpy.run_module("robagg.lab", run_name="__main__")
"""


def start(*command: str) -> subprocess.CompletedProcess[str]:
    home = str(Path(robagg.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": home}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_a_sweep_with_torch_and_numpy_alone(tmp_path: Path) -> None:
    store = tmp_path / "runs.jsonl"
    file = tmp_path / "a.toml"
    file.write_text("task = 'blobs'\nrules = ['tq', 'cm']\nattacks = 'lf'\nf = 3\nsettings.rounds = 3\n")
    plugin = str(EXAMPLES / "plugins" / "my_task.py")
    command = [sys.executable, "-c", BLOCK, str(file), "--store", str(store), "--plugin", plugin, "--device", "cpu"]
    done = start(*command)
    assert done.returncode == 0, done.stderr
    assert "2 runs: 2 done" in done.stdout
    assert len(load(store)) == 2
