"""In NVFlare's simulator: the example job, and NVFlare's other controller."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from nvflare.app_common.shareablegenerators.full_model_shareable_generator import FullModelShareableGenerator
from nvflare.app_common.workflows.scatter_and_gather import ScatterAndGather

from robagg.nvflare import RobustAggregator
from robagg.server import read_journal

STARTER = """
from pathlib import Path
import time
starts = Path("starts")
starts.write_text(starts.read_text() + "x" if starts.exists() else "x")
if len(starts.read_text()) < 3:
    print({said!r}, flush=True)
    time.sleep({hangs})
    raise SystemExit(1)
"""
EXAMPLE = Path(__file__).parents[2] / "examples" / "nvflare"


def test_scatter_and_gather_takes_the_same_aggregator(simulate: Callable[..., None], tmp_path: Path) -> None:
    n, rounds = 5, 4
    controller = ScatterAndGather(
        min_clients=n - 1, num_rounds=rounds, wait_time_after_min_received=60, persistor_id="persistor"
    )
    aggregator = RobustAggregator("tq", f=1, journal=str(tmp_path / "rounds.jsonl"))
    simulate(tmp_path, n, controller, aggregator=aggregator, shareable_generator=FullModelShareableGenerator())
    reports = read_journal(tmp_path / "rounds.jsonl").rounds
    assert [report.round for report in reports] == list(range(rounds))
    lost = [[client.client for client in report.clients if not client.replied] for report in reports]
    assert lost[:3] == [["site-1"]] * 3  # the first cases are errors
    assert reports[3].rejected[0].reason == "not finite"


def test_a_run_begins_again_where_nvflare_says_that_a_site_did_not_start_and_nowhere_else(
    simulator: ModuleType, tmp_path: Path
) -> None:
    missing = (
        "RuntimeError: Failed to create connection to the child process in SimulatorClientRunner, timeout: 60.0",
        "OSError: [Errno 98] Address already in use",
        "Communication error with client site-2: [Errno 104] Connection reset by peer",
    )
    for i, said in enumerate(missing):
        folder = tmp_path / str(i)
        folder.mkdir()
        command = [sys.executable, "-c", STARTER.format(said=said, hangs=600)]
        assert "rror" not in simulator.Simulator(command, folder, cwd=folder).finish()
        assert (folder / "starts").read_text() == "xxx"
    for said in (
        "RuntimeError: TM needs n > 2f",
        "Finished one task run for client: site-2 interval\nCommunication error with client site-2: gone",
    ):
        (tmp_path / "starts").unlink(missing_ok=True)
        command = [sys.executable, "-c", STARTER.format(said=said, hangs=0)]
        with pytest.raises(AssertionError, match=said.splitlines()[-1]):
            simulator.Simulator(command, tmp_path, cwd=tmp_path).finish()
        assert (tmp_path / "starts").read_text() == "x"


def test_the_example_learns_with_hostile_sites(simulator: ModuleType, tmp_path: Path) -> None:
    command = [sys.executable, "job.py", "--sites", "6", "--rounds", "4", "--attacks", "ipm,error", "--f", "0.34"]
    command += ["--workspace", str(tmp_path / "workspace"), "--journal", str(tmp_path / "rounds.jsonl")]
    said = simulator.Simulator(command, tmp_path, cwd=EXAMPLE).finish()
    accuracy = float(re.search(r"test accuracy ([\d.]+)%", said).group(1))  # type: ignore[union-attr]
    print(f"accuracy {accuracy}")
    assert accuracy > 75
    rounds = read_journal(tmp_path / "rounds.jsonl").rounds
    assert len(rounds) == 4
    for report in rounds:
        verdicts = {client.client: client for client in report.clients}
        far = {client.client: client.distance for client in report.clients if client.replied}
        assert max(far, key=lambda site: far[site] or 0.0) == "site-1"
        assert not verdicts["site-2"].replied
