"""In NVFlare's simulator: the example job, and NVFlare's other controller."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from nvflare.app_common.shareablegenerators.full_model_shareable_generator import FullModelShareableGenerator
from nvflare.app_common.workflows.scatter_and_gather import ScatterAndGather

from robagg.nvflare import RobustAggregator
from robagg.server import read_journal

EXAMPLE = Path(__file__).parents[2] / "examples" / "nvflare"


def test_scatter_and_gather_takes_the_same_aggregator(simulate: Callable[..., None], tmp_path: Path) -> None:
    n, rounds = 5, 4
    controller = ScatterAndGather(
        min_clients=n - 1, num_rounds=rounds, wait_time_after_min_received=5, persistor_id="persistor", train_timeout=60
    )
    aggregator = RobustAggregator("tq", f=1, journal=str(tmp_path / "rounds.jsonl"))
    simulate(tmp_path, n, controller, aggregator=aggregator, shareable_generator=FullModelShareableGenerator())
    reports = read_journal(tmp_path / "rounds.jsonl").rounds
    assert [report.round for report in reports] == list(range(rounds))
    lost = [[client.client for client in report.clients if not client.replied] for report in reports]
    assert lost[:3] == [["site-1"]] * 3  # the first cases are errors
    assert reports[3].rejected[0].reason == "not finite"


def test_the_example_learns_with_hostile_sites(tmp_path: Path) -> None:
    command = [sys.executable, "job.py", "--sites", "6", "--rounds", "4", "--attacks", "ipm,error", "--f", "0.34"]
    done = subprocess.run(
        [*command, "--workspace", str(tmp_path / "workspace"), "--journal", str(tmp_path / "rounds.jsonl")],
        cwd=EXAMPLE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    accuracy = float(re.search(r"test accuracy ([\d.]+)%", done.stdout).group(1))  # type: ignore[union-attr]
    print(f"accuracy {accuracy}")
    assert accuracy > 75
    rounds = read_journal(tmp_path / "rounds.jsonl").rounds
    assert len(rounds) == 4
    for report in rounds:
        verdicts = {client.client: client for client in report.clients}
        far = {client.client: client.distance for client in report.clients if client.replied}
        assert max(far, key=lambda site: far[site] or 0.0) == "site-1"
        assert not verdicts["site-2"].replied
