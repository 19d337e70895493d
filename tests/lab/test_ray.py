"""On Ray as in the pool: a worker that dies takes its own run alone with it, and plugins are loaded there."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.test_pool import TRAPS
from robagg.lab import Options, Store, grid, sweep
from robagg.lab.plugins import forget, load_plugin

pytestmark = pytest.mark.slow


def test_ray_survives_what_its_runs_do(tmp_path: Path, blobs: str) -> None:
    pytest.importorskip("ray", reason="Ray is an extra: pip install 'robagg[ray]'")
    traps = tmp_path / "traps.py"
    traps.write_text(TRAPS)
    load_plugin(traps)
    try:
        once, ever = (f"kill(file={str(tmp_path / name)!r}, times={k})" for name, k in (("once", 1), ("ever", 99)))
        runs = grid(tasks="blobs", rules="tq", attacks=[once, ever, "raise", "none"], f=3, settings={"rounds": 5})
        options = Options("cpu", workers=2, plugins=(str(traps), blobs), address="local")
        sweep(runs, tmp_path / "runs.jsonl", executor="ray", options=options)
        records = Store(tmp_path / "runs.jsonl").read().records
        assert [records[run.key]["status"] for run in runs] == ["ok", "failed", "failed", "ok"]
        assert "WorkerCrashedError" in records[runs[1].key]["error"]
        assert "ArithmeticError: as it was meant to be" in records[runs[2].key]["error"]
    finally:
        forget(traps)
