"""A run gives the same whether it is alone, comes after others, or was stopped and taken up."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from lab.sharing import strip
from robagg.lab import Run, execute
from robagg.lab.checkpoint import locate
from robagg.lab.execution import fit, store
from robagg.training import Result, Trace


class StopRunError(BaseException):
    """As Ctrl-C, or the end of the process."""


def small(**changes: Any) -> Run:
    settings = {"rounds": 20, "evaluate_every": 5}
    fields: dict[str, Any] = {"rule": "cc", "attack": "mimic", "task": "digits", "f": 5, "settings": settings}
    return Run(**fields | changes)


def test_a_record_is_json_and_tells_where_it_was_made() -> None:
    record = execute(small(), device="cpu")
    assert json.loads(json.dumps(record, allow_nan=False))["accuracy"] == record["accuracy"]
    assert record["status"] == "ok"
    assert [t for t, _ in record["curve"]] == [5, 10, 15, 20]
    assert record["curve"][-1][1] == pytest.approx(record["accuracy"], abs=1e-4)
    assert {"python", "torch", "numpy", "robagg", "device", "threads", "kernels"} <= record["environment"].keys()
    assert Run.from_json(record["spec"]).key == record["key"]


def test_running_others_before_changes_nothing(blobs: str) -> None:
    run = small(rule="bucketing >> tq", attack="ga")
    alone = execute(run, device="cpu")
    torch.manual_seed(123)
    execute(small(task="blobs", f=3, seed=3), device="cpu")
    assert strip(execute(run, device="cpu")) == strip(alone)


@pytest.mark.parametrize("changes", [{}, {"rule": "bucketing >> rfa", "attack": "ga", "task": "blobs", "f": 3}])
def test_a_run_stopped_and_taken_up_gives_the_same(tmp_path: Path, changes: dict[str, Any], blobs: str) -> None:
    run = small(**changes)
    whole = execute(run, device="cpu")

    def stop(done: int, rounds: int, accuracy: float | None) -> None:
        if done == 13:
            raise StopRunError

    with pytest.raises(StopRunError):
        execute(run, device="cpu", checkpoints=tmp_path, patience=0, progress=stop)
    seen: list[int] = []
    again = execute(run, device="cpu", checkpoints=tmp_path, progress=lambda done, *_: seen.append(done))
    assert seen[0] == 11, "from the last evaluation on, not from the first round"
    assert strip(again) == strip(whole)


def test_a_torn_checkpoint_or_one_from_elsewhere_is_not_taken_up(tmp_path: Path, blobs: str) -> None:
    run = small(task="blobs", f=3)
    whole = execute(run, device="cpu", checkpoints=tmp_path, patience=0)
    path = locate(tmp_path, run.key)
    good = path.read_bytes()
    for broken in (b"", b"nonsense", good[: len(good) // 2]):
        path.write_bytes(broken)
        assert strip(execute(run, device="cpu", checkpoints=tmp_path)) == strip(whole)
    path.write_bytes(good)
    saved = torch.load(path, weights_only=True)
    torch.save(saved | {"environment": saved["environment"] | {"threads": 7}}, path)
    seen: list[int] = []
    execute(run, device="cpu", checkpoints=tmp_path, progress=lambda done, *_: seen.append(done))
    assert seen[0] == 1


def test_a_process_that_ends_while_it_writes_a_checkpoint_leaves_the_one_before(
    tmp_path: Path, blobs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, written = small(task="blobs", f=3), 0
    whole = execute(run, device="cpu")

    def save(saved: object, path: Path) -> None:
        nonlocal written
        written += 1
        if written == 3:
            path.write_bytes(b"half of a state")
            raise StopRunError
        write(saved, path)

    write = torch.save
    monkeypatch.setattr(torch, "save", save)
    with pytest.raises(StopRunError):
        execute(run, device="cpu", checkpoints=tmp_path, patience=0)
    monkeypatch.undo()
    seen: list[int] = []
    again = execute(run, device="cpu", checkpoints=tmp_path, progress=lambda done, *_: seen.append(done))
    assert seen[0] == 11, "from the second checkpoint on, not from the first round"
    assert strip(again) == strip(whole)


def test_short_runs_write_no_checkpoint(tmp_path: Path, blobs: str) -> None:
    execute(small(task="blobs", f=3), device="cpu", checkpoints=tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_a_failing_run_is_a_record_with_its_traceback(tmp_path: Path) -> None:
    record = execute(small(task="mnist"), device="cpu", data=tmp_path)
    assert record["status"] == "failed"
    assert "FileNotFoundError: cannot read mnist" in record["error"]
    assert "Traceback" in record["traceback"]
    assert 'File "robagg/' in record["traceback"] and 'File "/' not in record["traceback"], "a store is published"
    assert json.dumps(record, allow_nan=False)
    assert execute(small(), device="cpu", threads=0)["error"].startswith("ValueError: threads must be at least 1")


def test_threads_are_fixed_for_the_run_and_given_back(blobs: str) -> None:
    before = torch.get_num_threads()
    seen: list[int] = []
    run = small(task="blobs", f=3, settings={"rounds": 2})
    record = execute(run, device="cpu", threads=2, progress=lambda *_: seen.append(torch.get_num_threads()))
    assert set(seen) == {2}
    assert record["environment"]["threads"] == 2
    assert torch.get_num_threads() == before


def test_a_record_has_at_most_12_kb_beside_its_metrics_and_says_what_it_left_out() -> None:
    n, points = 60, 150
    run = small(n=n, settings={"rounds": 1500, "evaluate_every": 2})
    trace = Trace(n, 5)
    for t in range(points):
        trace.add(10 * t, 1.2345, 0.1234, torch.rand(n), torch.zeros(n, dtype=torch.bool), torch.rand(n))
    curve = [(t, 90 + t / 777) for t in range(2, 1501, 2)]
    result = Result(curve[-1][1], curve, trace, torch.nn.Linear(1, 1), None, 1500, 1.0, "cpu", ["a note"])
    record = fit(run, result, {"seconds": 1.0, "environment": {}})
    assert len(json.dumps(record)) <= 12_000
    assert record["curve"][-1] == (1500, round(90 + 1500 / 777, 4)), "the last point stays"
    assert record["trace"]["rounds"][-1] == 1490
    assert record["notes"][0] == "a note"
    assert record["notes"][1].startswith("thinned to")
    long = dataclasses.replace(result, metrics={"mine": [k / 7 for k in range(3000)]})
    whole = fit(run, long, {"seconds": 1.0, "environment": {}})
    assert len(whole["metrics"]["mine"]) == 3000, "what a user asked for is kept"
    assert all(whole[name] == record[name] for name in ("curve", "trace", "notes"))
    small_one = Result(1.0, curve[:3], Trace(n, 5), torch.nn.Linear(1, 1), None, 6, 1.0, "cpu")
    assert fit(run, small_one, {})["notes"] == []


def test_a_diverged_run_is_told(blobs: str) -> None:
    record = execute(small(task="blobs", rule="mean", f=3, settings={"rate": 1e30, "rounds": 9}), device="cpu")
    assert record["status"] == "ok"
    assert record["diverged"] is not None
    assert json.dumps(record, allow_nan=False)


def test_what_is_measured_of_the_model_is_in_the_record(blobs: str) -> None:
    record = execute(small(task="blobs", f=3), device="cpu")
    assert {"loss", "class_accuracy", "worst_client"} == record["metrics"].keys()
    assert all(0 <= value <= 100 for value in record["metrics"]["class_accuracy"])
    assert store([1 / 3, math.inf]) == [0.333333, None]
