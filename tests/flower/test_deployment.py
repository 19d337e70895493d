"""The example app in Flower's deployment engine: four nodes over TLS with authentication; hostile, killed, crashing."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="needs the extra robagg[flower]")
pytest.importorskip("sklearn", reason="needs scikit-learn, for the digits")

import robagg
from flower.deployment import Deployment
from flower.newcomers import WITH_MOMENTUM, add_momentum, change, copy_newcomer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (shutil.which("openssl") and shutil.which("ssh-keygen")), reason="needs openssl, ssh-keygen"
    ),
]
EXAMPLE = Path(__file__).parents[2] / "examples" / "flower"


def copy_example(folder: Path) -> Path:
    shutil.copytree(EXAMPLE, folder / "app", ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "app"


def test_one_hostile_node_and_one_killed_do_not_stop_the_learning(tmp_path: Path) -> None:
    app = copy_example(tmp_path)
    log = tmp_path / "verdicts.jsonl"
    config = (
        'rule="nnm >> cm" f=0.34 attacks="ipm" num-server-rounds=5 local-epochs=5 momentum=0.1 '
        f'min-nodes=4 timeout=300.0 log-file="{log}"'
    )
    with Deployment(tmp_path, 4, [str(Path(robagg.__file__).parents[1])]) as deployment:
        run = deployment.start("run", "flwr", "run", str(app), "test", "--stream", "--run-config", config)
        deployment.wait_until("run", "[ROUND 2/5]", 600)
        deployment.kill("node3")
        deployment.wait_until("run", "test accuracy", 1200)
        run.wait(300)
        said = deployment.said("run")
    rounds = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(rounds) == 5
    assert sum(client["replied"] for client in rounds[0]["clients"]) == 4  # all were waited for
    lost = {client["client"] for entry in rounds for client in entry["clients"] if not client["replied"]}
    assert len(lost) == 1  # and named, though dead
    assert lost <= {client["client"] for client in rounds[0]["clients"]}
    assert not any(entry["skipped"] for entry in rounds)
    accuracy = float(re.search(r"test accuracy ([\d.]+)%", said).group(1))  # type: ignore[union-attr]
    print(f"accuracy {accuracy}, {len(rounds)} rounds")
    assert accuracy > 80


def test_a_crashing_client_is_the_only_one_lost_and_momentum_outlives_the_processes(tmp_path: Path) -> None:
    app, other = copy_example(tmp_path), copy_newcomer(tmp_path / "other")
    change(other, nodes=4)
    add_momentum(other)
    log = tmp_path / "verdicts.jsonl"
    config = f'attacks="crash" num-server-rounds=2 local-epochs=8 min-nodes=4 timeout=90.0 log-file="{log}"'
    with Deployment(tmp_path, 4, [str(Path(robagg.__file__).parents[1])]) as deployment:
        run = deployment.start("run", "flwr", "run", str(app), "test", "--stream", "--run-config", config)
        deployment.wait_until("run", "test accuracy", 1200)
        run.wait(300)
        deployment.start("momentum", "flwr", "run", str(other), "test", "--stream")
        deployment.wait_until("momentum", "the model is", 600)
        assert WITH_MOMENTUM in deployment.said("momentum")
        said = deployment.said("run")
    rounds = [json.loads(line) for line in log.read_text().splitlines()]
    lost = [{client["client"] for client in entry["clients"] if not client["replied"]} for entry in rounds]
    assert len(lost) == 2
    assert all(len(nodes) == 1 for nodes in lost), lost
    assert lost[0] == lost[1]
    assert not any(entry["skipped"] for entry in rounds)
    accuracy = float(re.search(r"test accuracy ([\d.]+)%", said).group(1))  # type: ignore[union-attr]
    print(f"accuracy {accuracy}", [client["reason"] for entry in rounds for client in entry["clients"]])
    assert accuracy > 70
