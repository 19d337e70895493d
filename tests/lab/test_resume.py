"""Killed in the middle and started again, on two workers or on Ray: every run is there once, with the same numbers."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import robagg
from lab.sharing import strip
from robagg.lab import Options, Store, load, read_sweep, sweep

pytestmark = pytest.mark.slow

SWEEP = """
task = "digits"
rules = ["tq", "nnm >> cm", "bucketing >> krum"]
attacks = ["ipm", "mimic"]
f = [4, 6]
seeds = [0, 1]
settings = { rounds = 30, evaluate_every = 10 }
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sweep") / "kill.toml"
    path.write_text(SWEEP)
    return path


@pytest.fixture(scope="module")
def undisturbed(file: Path) -> dict[str, Any]:
    """Every record by key, from one process that nobody disturbs."""
    store = file.with_name("undisturbed.jsonl")
    assert sweep(read_sweep(file).runs, store, options=Options("cpu")).ran == 24
    return {key: strip(record) for key, record in Store(store).read().records.items()}


def start(file: Path, store: Path) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "robagg.lab",
        str(file),
        "--store",
        str(store),
        "--workers",
        "2",
        "--device",
        "cpu",
    ]
    home = str(Path(robagg.__file__).parents[1])
    return subprocess.Popen(
        command,
        env=os.environ | {"PYTHONPATH": home},
        stdout=subprocess.DEVNULL,
        # Whoever runs the tests in the background has SIGINT ignored, which children inherit.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def count_lines(store: Path) -> int:
    return store.read_bytes().count(b"\n") if store.exists() else 0


def test_kill_9_in_the_middle_of_24_runs(file: Path, undisturbed: dict[str, Any]) -> None:
    store = file.with_name("killed.jsonl")
    for enough in (4, 13):
        process = start(file, store)
        while count_lines(store) < enough:
            assert process.poll() is None, "it must not end before it is killed"
            time.sleep(0.01)
        workers = find_workers(process.pid)
        process.kill()
        process.wait()
        deadline = time.monotonic() + 60
        while any(Path(f"/proc/{pid}").exists() for pid in workers):
            assert time.monotonic() < deadline, "workers must not outlive the one who started them"
            time.sleep(0.05)
    assert count_lines(store) < 24
    assert start(file, store).wait() == 0
    lines = [line for line in store.read_bytes().split(b"\n") if line]
    assert len(lines) == 24
    records = Store(store).read().records
    assert Counter(record["key"] for record in load(store)) == Counter(undisturbed.keys())
    assert {key: strip(record) for key, record in records.items()} == undisturbed


def test_ctrl_c_stops_workers_too_and_the_same_command_goes_on(tmp_path: Path) -> None:
    file, store = tmp_path / "long.toml", tmp_path / "runs.jsonl"
    file.write_text('rules = ["tq", "cm"]\nattacks = ["ipm", "lf"]\nf = 4\nsettings = { rounds = 40 }\n')
    process = start(file, store)
    while count_lines(store) < 1:
        assert process.poll() is None
        time.sleep(0.01)
    workers = find_workers(process.pid)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=120) == 130
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline, "workers must be gone"
        time.sleep(0.05)
    before = count_lines(store)
    assert before < 4
    assert start(file, store).wait() == 0
    assert len(load(store)) == count_lines(store) == 4


def find_workers(parent: int) -> list[int]:
    """The processes that one has started, where /proc tells."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(entry.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(entry.parent.name))
    return found


def test_the_same_sweep_on_a_local_ray(file: Path, undisturbed: dict[str, Any]) -> None:
    pytest.importorskip("ray", reason="Ray is an extra: pip install 'robagg[ray]'")
    store = file.with_name("ray.jsonl")
    summary = sweep(read_sweep(file).runs, store, executor="ray", options=Options("cpu", workers=2, address="local"))
    assert (summary.ran, summary.failed) == (24, [])
    assert {key: strip(record) for key, record in Store(store).read().records.items()} == undisturbed


def test_ray_that_is_not_installed_is_told(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'robagg\[ray\]'"):
        sweep(read_sweep(file).runs[:1], file.with_name("none.jsonl"), executor="ray", options=Options("cpu"))
