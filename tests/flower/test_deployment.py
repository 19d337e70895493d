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
        f'min-nodes=4 timeout=40.0 log-file="{log}"'
    )
    with Deployment(tmp_path, 4, [str(Path(robagg.__file__).parents[1])]) as deployment:
        run = deployment.start("run", "flwr", "run", str(app), "test", "--stream", "--run-config", config)
        deployment.wait_until("run", "[ROUND 2/5]", 240)
        deployment.kill("node3")
        deployment.wait_until("run", "test accuracy", 400)
        run.wait(60)
        said = deployment.said("run")
    rounds = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(rounds) == 5
    assert sum(node["replied"] for node in rounds[0]["nodes"]) == 4  # all were waited for
    lost = {node["node"] for entry in rounds for node in entry["nodes"] if not node["replied"]}
    assert len(lost) == 1  # and named, though dead
    assert lost <= {node["node"] for node in rounds[0]["nodes"]}
    assert not any(entry["skipped"] for entry in rounds)
    accuracy = float(re.search(r"test accuracy ([\d.]+)%", said).group(1))  # type: ignore[union-attr]
    print(f"accuracy {accuracy}, {len(rounds)} rounds")
    assert accuracy > 80


def test_a_client_that_ends_its_process_in_every_round_is_the_only_one_lost(tmp_path: Path) -> None:
    app = copy_example(tmp_path)
    log = tmp_path / "verdicts.jsonl"
    config = f'attacks="crash" num-server-rounds=3 local-epochs=5 min-nodes=4 timeout=30.0 log-file="{log}"'
    with Deployment(tmp_path, 4, [str(Path(robagg.__file__).parents[1])]) as deployment:
        run = deployment.start("run", "flwr", "run", str(app), "test", "--stream", "--run-config", config)
        deployment.wait_until("run", "test accuracy", 400)
        run.wait(60)
        said = deployment.said("run")
    rounds = [json.loads(line) for line in log.read_text().splitlines()]
    lost = [[node["node"] for node in entry["nodes"] if not node["replied"]] for entry in rounds]
    assert len(lost) == 3
    assert all(len(nodes) == 1 for nodes in lost), lost
    assert not any(entry["skipped"] for entry in rounds)
    accuracy = float(re.search(r"test accuracy ([\d.]+)%", said).group(1))  # type: ignore[union-attr]
    print(f"accuracy {accuracy}, {[node['reason'] for entry in rounds for node in entry['nodes'] if node['reason']]}")
    assert accuracy > 70
