"""The example app in Flower's simulation engine: attackers cost less than two points of accuracy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flwr", reason="needs the extra robagg[flower]")
pytest.importorskip("ray", reason="needs flwr[simulation]")
pytest.importorskip("sklearn", reason="needs scikit-learn, for the digits")

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "OMP_NUM_THREADS": "1",
}


def simulate(*settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Run the example with these settings, one run after the other."""
    import robagg

    paths = [str(Path(robagg.__file__).parents[1]), str(ROOT / "examples" / "flower")]
    done = subprocess.run(
        [sys.executable, str(HERE / "simulate.py"), json.dumps(settings)],
        env=os.environ | QUIET | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULTS "))
    results: list[dict[str, Any]] = json.loads(line.removeprefix("RESULTS "))
    return results


def reasons(result: dict[str, Any]) -> list[set[str]]:
    """Round by round, what is said of the nodes that were not believed."""
    return [{client["reason"] for client in entry["clients"] if client["reason"]} for entry in result["rounds"]]


def test_several_attackers_at_once_neither_end_the_run_nor_stop_the_learning() -> None:
    (result,) = simulate({"attacks": "nan,complex,error", "num-server-rounds": 3, "local-epochs": 2, "timeout": 300.0})
    assert result["accuracy"] > 0.6
    for said in reasons(result):
        assert "not finite" in said
        assert any("complex64" in reason for reason in said)
        assert any("fails on purpose" in reason for reason in said)
    assert not any(entry["skipped"] for entry in result["rounds"])


ROUNDS = {"num-server-rounds": 12, "local-epochs": 3, "timeout": 300.0}
NAMES = [
    "sign-flip",
    "ipm",
    "nan",
    "wrong-shape",
    "extra-keys",
    "many-examples",
    "complex",
    "strings",
    "corrupt",
    "error",
    "crash",
]


@pytest.fixture(scope="module")
def results() -> dict[str, dict[str, Any]]:
    """Of the run without an attacker and of one run for each attacker, of several at once, and of what docs compare."""
    runs: dict[str, dict[str, Any]] = {"": ROUNDS} | {name: ROUNDS | {"attacks": name} for name in NAMES}
    runs["many"] = ROUNDS | {"attacks": "ipm,nan,strings"}
    runs["fedavg"] = ROUNDS | {"attacks": "ipm", "rule": "fedavg"}
    runs["momentum"] = ROUNDS | {"momentum": 0.5}
    found = dict(zip(runs, simulate(*runs.values()), strict=True))
    print({name: round(100 * result["accuracy"], 2) for name, result in found.items()})
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES, "many"])
def test_an_attacker_costs_less_than_two_points(name: str, results: dict[str, dict[str, Any]]) -> None:
    assert results[""]["accuracy"] > 0.9
    assert results[name]["accuracy"] > results[""]["accuracy"] - 0.02


@pytest.mark.slow
def test_a_crash_loses_one_node_and_no_other(results: dict[str, dict[str, Any]]) -> None:
    """The process ends in every round, for good (os._exit), and Ray starts another."""
    lost = [[client for client in entry["clients"] if not client["replied"]] for entry in results["crash"]["rounds"]]
    assert len(lost) == ROUNDS["num-server-rounds"]
    assert all("Actor" in client["reason"] for clients in lost for client in clients)
    assert [len(nodes) for nodes in lost] == [1] * len(lost)
    assert len({nodes[0]["client"] for nodes in lost}) == 1


@pytest.mark.slow
def test_without_a_rule_it_would_cost_more(results: dict[str, dict[str, Any]]) -> None:
    assert results["fedavg"]["accuracy"] < results[""]["accuracy"] - 0.02


@pytest.mark.slow
def test_momentum_survives_rounds(results: dict[str, dict[str, Any]]) -> None:
    """If a client forgot, half of each update would be lost for good."""
    assert results["momentum"]["accuracy"] > results[""]["accuracy"] - 0.02


@pytest.mark.slow
def test_a_dead_process_that_nobody_replaces_costs_rounds_and_in_the_end_the_run() -> None:
    """As Flower sets up Ray, with one process: it stays in the pool, dead, and fails every message from then on.

    The rounds that fail do not end the run by themselves: the model is kept. That nothing is learned any more does.
    """
    alone = {"num_cpus": 2, "max_restarts": 0, "max_task_retries": 0}
    run = {"attacks": "crash", "timeout": 60.0, "client_resources": alone}
    borne, ended = simulate(
        run | {"num-server-rounds": 3, "max-skipped": 4}, run | {"num-server-rounds": 9, "max-skipped": 2}
    )
    for result in (borne, ended):
        for entry in result["rounds"][1:]:
            assert entry["skipped"]
            assert all("process has died" in client["reason"] for client in entry["clients"])
    if borne["rounds"][0]["skipped"]:  # the crash came before enough others had answered, so nothing was ever learned
        assert "the last 3 rounds were skipped" in borne["error"]
    else:
        assert borne["accuracy"] > 0  # the model is kept, and evaluated
    assert len(borne["rounds"]) == 3
    assert "the last 2 rounds were skipped" in ended["error"]
    assert len(ended["rounds"]) == 2 + (not ended["rounds"][0]["skipped"])
