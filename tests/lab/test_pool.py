"""The pool gives what one process gives; a worker that dies takes its own run alone with it."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.sharing import strip
from robagg.lab import Options, Run, Store, Watcher, grid, sweep
from robagg.lab.executors import pool
from robagg.lab.lines import Record
from robagg.lab.plugins import forget, load_plugin

TRAPS = '''
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from robagg.attacks.no_attack import NoAttack


@dataclass(frozen=True)
class Kill(NoAttack):
    """Kills the process it runs in, `times` times."""

    file: str = ""
    times: int = 1

    @classmethod
    def name(cls):
        return "kill"

    def craft(self, view, state):
        path = Path(self.file)
        count = len(path.read_text()) if path.exists() else 0
        if count < self.times:
            path.write_text("x" * (count + 1))
            print("I am going down")
            os.kill(os.getpid(), signal.SIGKILL)
        return super().craft(view, state)


@dataclass(frozen=True)
class Raise(NoAttack):
    """Fails."""

    @classmethod
    def name(cls):
        return "raise"

    def craft(self, view, state):
        raise ArithmeticError("as it was meant to be")
'''


class Notes(Watcher):
    def __init__(self) -> None:
        self.said: list[str] = []
        self.records: list[Record] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def finish(self, run: Run, record: Record) -> None:
        self.records.append(record)


def test_a_pool_survives_what_its_runs_do(tmp_path: Path, blobs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers, runs that kill their worker once and for ever, one that raises, and good ones beside them."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # error output is flushed without it
    traps = tmp_path / "traps.py"
    traps.write_text(TRAPS)
    load_plugin(traps)
    try:
        once, ever = (f"kill(file={str(tmp_path / name)!r}, times={k})" for name, k in (("once", 1), ("ever", 99)))
        attacks = [once, ever, "raise", "none", "ipm"]
        runs = grid(tasks="blobs", rules="tq", attacks=attacks, f=3, settings={"rounds": 10})
        options = Options("cpu", workers=2, plugins=(str(traps), blobs))
        watcher, path = Notes(), tmp_path / "runs.jsonl"
        summary = sweep(runs, path, options=options, watcher=watcher)
        assert summary.ran == 5
        records = {record["spec"]["attack"].split("(")[0]: record for record in watcher.records if "once" not in
                   record["spec"]["attack"]}  # fmt: skip
        assert records["kill"]["status"] == "failed"
        assert "killed by signal 9" in records["kill"]["error"]
        assert "I am going down" in records["kill"]["error"], "the end of its error output"
        assert "ArithmeticError: as it was meant to be" in records["raise"]["error"]
        assert "in craft" in records["raise"]["traceback"]
        again = next(record for record in watcher.records if "once" in record["spec"]["attack"])
        assert again["status"] == "ok", "a run whose worker was killed is done again"
        assert sum("begun again" in text for text in watcher.said) == 2
        # The good ones are what this process alone gives.
        good = [run for run in runs if run.attack in ("none", "ipm(c0=None)", "ipm")]
        sweep(good, tmp_path / "alone.jsonl", executor="here", options=options)
        alone, pooled = Store(tmp_path / "alone.jsonl").read().records, Store(path).read().records
        assert len(good) == 2
        for run in good:
            assert strip(alone[run.key]) == strip(pooled[run.key])
        # What failed is done again, and only that; or left, if asked.
        assert sweep(runs, path, executor="here", options=options, retry=False).ran == 0
        fixed = [run for run in runs if "ever" not in run.attack]
        assert [r["spec"]["attack"] for r in sweep(fixed, path, executor="here", options=options).failed] == ["raise"]
    finally:
        forget(traps)


def test_a_worker_that_cannot_begin_is_an_error_and_not_a_failed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(rule="tq", f=3, settings={"rounds": 2})
    with pytest.raises(RuntimeError, match="there is none at"):
        sweep([run], tmp_path / "a.jsonl", executor="pool", options=Options("cpu", plugins=("/nowhere/x.py",)))
    assert Store(tmp_path / "a.jsonl").read().records == {}


def test_a_worker_with_another_version_of_a_plugin_refuses(tmp_path: Path, blobs: str) -> None:
    from robagg.lab.executors.job import do_job, write_job

    job: dict[str, Any] = json.loads(write_job(Run(rule="tq", task="blobs", f=3)))
    record = do_job(json.dumps(job | {"key": "0" * 24}), Options("cpu"))
    assert record["status"] == "failed"
    assert record["key"] == "0" * 24
    assert "another version of robagg or of a plugin" in record["error"]


def test_ctrl_c_stops_cleanly_and_the_same_sweep_goes_on(tmp_path: Path, blobs: str) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a runner of tests in parallel may ignore it
    runs = grid(tasks="blobs", rules=["tq", "cm", "tm"], attacks="ipm", f=3, settings={"rounds": 5})

    class Impatient(Watcher):
        def finish(self, run: Run, record: Record) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    path, options = tmp_path / "runs.jsonl", Options("cpu", plugins=(blobs,))
    summary = sweep(runs, path, options=options, watcher=Impatient())
    assert summary.stopped
    assert summary.ran == 1
    assert "2 left" in str(summary)
    rest = sweep(runs, path, options=options)
    assert (rest.before, rest.ran, rest.stopped) == (1, 2, False)
    assert len(Store(path).read().records) == 3


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"workers": 0}, "workers must be"),
        ({"threads": 0}, "threads must be"),
        ({"device": "cpu,cpu"}, "one per device"),
    ],
)
def test_options_out_of_range_are_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Options(**wrong)  # type: ignore[arg-type]


def test_workers_take_the_devices_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    real = pool.Worker.__init__

    def note(worker: pool.Worker, options: Options, *rest: Any) -> None:
        seen.append(options.device)
        real(worker, replace(options, device="cpu"), *rest)

    monkeypatch.setattr(pool.Worker, "__init__", note)
    runs = grid(rules=["cm", "mean"], f=2, settings={"rounds": 1})
    sweep(runs, tmp_path / "a.jsonl", options=Options(" cpu , cpu:0", workers=2))
    assert seen == ["cpu", "cpu:0"]


def test_a_device_that_is_none_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="device must be auto, cpu, cuda"):
        sweep([Run(rule="tq")], tmp_path / "a.jsonl", options=Options("foo"))
    for device in ("mps", "meta"):
        with pytest.raises(ValueError, match=f"device must be cpu or cuda for training, got '{device}'"):
            sweep([Run(rule="tq")], tmp_path / "a.jsonl", options=Options(device))
    for executor in ("here", "ray"):
        with pytest.raises(ValueError, match=f"several devices need a pool of workers, got executor='{executor}'"):
            sweep([Run(rule="tq")], tmp_path / "a.jsonl", executor=executor, options=Options("cpu,cpu", workers=2))
    assert not Store(tmp_path / "a.jsonl").read().records


def test_an_unknown_executor_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="auto, here, pool, ray"):
        sweep([Run(rule="tq")], tmp_path / "a.jsonl", executor="slurm")
