"""The example app in Flower's deployment engine: four nodes over TLS with authentication, one hostile, one killed."""

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


def test_one_hostile_node_and_one_killed_do_not_stop_the_learning(tmp_path: Path) -> None:
    app = tmp_path / "app"
    shutil.copytree(EXAMPLE, app, ignore=shutil.ignore_patterns("__pycache__"))
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
