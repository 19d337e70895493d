"""A large hostile reply costs next to nothing beside what is there when it has come."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "hostile_memory.py"
INSTALLED = {found.name for found in distributions()}
ADAPTERS = {"server": "torch", "flower": "flwr"}

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux")]


def measure(framework: str, kind: str) -> float:
    """MB by which a round raises the memory of a process of its own, where one of eleven replies has 200 MB."""
    command = [sys.executable, str(BENCHMARK), "--framework", framework, "--one", kind, "--size", "200"]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])


@pytest.mark.parametrize("framework", [name for name, package in ADAPTERS.items() if package in INSTALLED])
@pytest.mark.parametrize("kind", ["arrays of 1 kB too many", "metrics of 100 bytes each"])
def test_a_reply_of_two_hundred_megabytes_costs_less_than_ten(framework: str, kind: str) -> None:
    """Of the kinds in the benchmark those two are of many small parts, which are dearer to look at than a large one."""
    assert measure(framework, kind) - measure(framework, "honest") < 10
