"""Flower over TLS: the server app's process is killed in the middle of a round, and started again."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="needs the extra robagg[flower]")
pytest.importorskip("sklearn", reason="needs scikit-learn, for the digits")

import robagg
from flower.deployment import Deployment
from robagg.server import RobustServer, read_journal, verify_journal
from server.softmax import CLIENTS, answer, evaluate, start, write_data

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (shutil.which("openssl") and shutil.which("ssh-keygen")), reason="needs openssl, ssh-keygen"
    ),
]
TESTS = Path(__file__).parents[1]
ROUNDS = int(os.environ.get("ROBAGG_TEST_ROUNDS", "6"))
KILLED_IN = 2 * ROUNDS // 5 + 1
ENOUGH = 300 + 150 * ROUNDS
"""Seconds that a busy machine may take: in every round each node starts a process."""


def run_undisturbed(data: Path) -> float:
    """The same rounds without an engine; returns the accuracy of the last model."""
    server = RobustServer("tq", f=2)
    model = start()
    for number in range(1, ROUNDS + 1):
        replies = {str(client): answer(model, data, client, number) for client in range(CLIENTS)}
        model = server.aggregate(number, replies, model=model).model
    return evaluate(model, data)


def test_a_server_app_killed_in_the_middle_of_a_round_goes_on_where_it_was(tmp_path: Path) -> None:
    app, data, journal = tmp_path / "app", tmp_path / "digits.npz", tmp_path / "rounds.jsonl"
    shutil.copytree(TESTS / "flower" / "learners", app, ignore=shutil.ignore_patterns("__pycache__"))
    write_data(data)
    undisturbed = run_undisturbed(data)
    command = ["flwr", "run", str(app), "test", "--stream", "--run-config", f'rounds={ROUNDS} folder="{tmp_path}"']
    with Deployment(tmp_path, CLIENTS, [str(Path(robagg.__file__).parents[1]), str(TESTS)]) as deployment:
        first, end = deployment.start("first", *command), time.monotonic() + ENOUGH
        while not (tmp_path / f"began-{KILLED_IN}").exists():
            assert first.poll() is None and time.monotonic() < end, deployment.said("first")[-3000:]
            time.sleep(0.05)
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        assert len(read_journal(journal).rounds) == KILLED_IN - 1
        deployment.kill("first")
        deployment.start("second", *command)
        deployment.wait_until("second", "test accuracy", ENOUGH)
        said = deployment.said("second")
    accuracy = float(re.search(r"test accuracy ([\d.]+)", said).group(1))  # type: ignore[union-attr]
    print(f"accuracy {accuracy:.4f} after the kill, {undisturbed:.4f} undisturbed")
    assert abs(accuracy - undisturbed) < 0.01
    rounds = read_journal(journal).rounds
    assert [report.round for report in rounds] == list(range(1, ROUNDS + 1))
    assert len({report.run for report in rounds}) == 1
    assert verify_journal(journal) == []
    assert all(len(report.rejected) >= 2 and report.answered == CLIENTS for report in rounds)
