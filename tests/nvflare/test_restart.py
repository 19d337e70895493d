"""Thirty rounds in NVFlare's simulator, killed in the middle of one and started again: none is lost or done twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
from nvflare.job_config.api import FedJob

from robagg.nvflare import RobustAggregator, RobustFedAvg
from robagg.server import read_journal, verify_journal
from server.softmax import CLIENTS, evaluate, write_data

ROUNDS, KILLED_IN = 30, 12


class Federation:
    """Ten sites, of which two are hostile in turn; what they and the server keep is in the folder."""

    def __init__(
        self, learners: ModuleType, simulator: ModuleType, add_scripts: Callable[..., None], folder: Path
    ) -> None:
        folder.mkdir()
        self.folder, self.journal = folder, folder / "rounds.jsonl"
        write_data(folder / "digits.npz")
        aggregator = RobustAggregator("tq", f=2, journal=self.journal, state=folder / "server.pt")
        job = FedJob(name="job", min_clients=CLIENTS)
        job.set_app_packages(["robagg"])
        job.to_server({"server": {"task_request_interval": 0.2}})
        settings = {"num_clients": CLIENTS, "num_rounds": ROUNDS, "task_check_period": 0.1}
        job.to_server(RobustFedAvg(aggregator=aggregator, **settings))
        job.to_server(learners.Zero(str(folder)), id="persistor")
        job.to_clients(learners.Learner(str(folder)))
        add_scripts(job, "server/softmax.py")
        self.simulator = simulator.Simulator.of_job(job, folder, CLIENTS)

    def finish(self) -> float:
        """Run to the end; returns the accuracy of the last model."""
        self.simulator.finish()
        with np.load(self.folder / "last.npz") as model:
            return evaluate(dict(model), self.folder / "digits.npz")


def test_a_server_killed_in_the_middle_of_a_round_goes_on_where_it_was(
    learners: ModuleType, simulator: ModuleType, add_scripts: Callable[..., None], tmp_path: Path
) -> None:
    undisturbed = Federation(learners, simulator, add_scripts, tmp_path / "undisturbed").finish()
    federation = Federation(learners, simulator, add_scripts, tmp_path / "killed")
    federation.simulator.start()
    federation.simulator.wait_until((federation.folder / f"began-{KILLED_IN}").exists)
    federation.simulator.kill()
    assert len(read_journal(federation.journal).rounds) == KILLED_IN
    accuracy = federation.finish()
    print(f"accuracy {accuracy:.4f} after the kill, {undisturbed:.4f} undisturbed")
    assert undisturbed > 0.8
    assert abs(accuracy - undisturbed) < 0.01
    rounds = read_journal(federation.journal).rounds
    assert [report.round for report in rounds] == list(range(ROUNDS))
    assert len({report.run for report in rounds}) == 1
    assert verify_journal(federation.journal) == []
    for report in rounds:
        hostile = {f"site-{(report.round - i) % CLIENTS + 1}" for i in (0, 1)}
        assert hostile <= {client.client for client in report.rejected}
