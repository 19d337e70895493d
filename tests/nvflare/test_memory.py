"""A large hostile reply costs next to nothing beside what is there when NVFlare has delivered it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "hostile_memory.py"


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux")
def test_a_reply_of_two_hundred_megabytes_costs_less_than_ten() -> None:
    costs = []
    for kind in ("honest", "arrays of 1 kB too many"):
        command = [sys.executable, str(BENCHMARK), "--framework", "nvflare", "--one", kind, "--size", "200"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        costs.append(float(done.stdout.splitlines()[-1]))
    honest, hostile = costs
    assert hostile - honest < 10
