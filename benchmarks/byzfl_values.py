"""What ByzFL itself gives on fixed rows, for every rule, pre-aggregator and attack that robagg has too.

python benchmarks/byzfl_values.py writes tests/rules/byzfl.json, which the tests compare robagg with.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import peers

FILE = Path(__file__).parents[1] / "tests" / "rules" / "byzfl.json"
SIZES = {"few": (5, 3), "plain": (9, 4), "outliers": (12, 5), "wide": (13, 12), "line": (8, 1), "short line": (11, 1)}
"""Name of a stack -> n and d."""


def draw_stacks() -> dict[str, Any]:
    """Rows of four digits; the last quarter of two stacks lies far off."""
    stacks = {}
    for seed, (name, (n, d)) in enumerate(SIZES.items()):
        x = np.random.default_rng(seed).normal(size=(n, d))
        if name in ("outliers", "short line"):
            x[-(n // 4) :] = 5 * x[-(n // 4) :] + 3
        stacks[name] = x.round(4)
    return stacks


def list_rules(n: int, d: int) -> list[str]:
    calls = ["Average()", "Median()", "GeometricMedian()", "GeometricMedian(nu=0.5, T=7)", "GeometricMedian(0.01, 20)"]
    calls += ["CenteredClipping()", "CenteredClipping(L=3, tau=2.0)", "CenteredClipping(None, 5, 0.7)"]
    for f in range(1, (n - 1) // 2 + 1):
        calls += [f"{name}({f})" for name in ("TrMean", "Krum", "MultiKrum", "Meamed", "MDA")]
        calls += [f"MoNNA(f={f}, idx={idx})" for idx in (0, 2)]
        # Where there is one direction, a step from a random vector finds it. (CAF is another rule: docs/byzfl.md.)
        calls += [f"SMEA(f={f})"] if d == 1 else []
    return calls


def list_mixers(n: int) -> list[str]:
    calls = ["Clipping(2.0)", "Clipping(c=0.8)", f"Bucketing(s={n})", "Bucketing(s=1)"]
    return calls + [f"{name}({f})" for f in range(1, (n - 1) // 2 + 1) for name in ("NNM", "ARC")]


def list_attacks() -> list[str]:
    calls = ["SignFlipping()", "InnerProductManipulation()", "InnerProductManipulation(0.3)", "ALittleIsEnough()"]
    # Of what is drawn only the centre can be compared.
    return [*calls, "ALittleIsEnough(tau=0.4)", "Mimic(epsilon=0)", "Mimic(3)", "Inf()", "Gaussian(0.5, 1e-13)"]


def main() -> int:
    if (byzfl := peers.load_byzfl()) is None:
        print("ByzFL must be installed beside this script, and could not be", file=sys.stderr)
        return 1
    stacks, cases = draw_stacks(), []
    for name, x in stacks.items():
        for kind, calls in (("rule", list_rules(*x.shape)), ("mixer", list_mixers(len(x))), ("attack", list_attacks())):
            for call in calls:
                value = np.asarray(eval(call, vars(byzfl))(x.copy()), dtype=float)
                value = value[np.lexsort(value.T)] if call == "Bucketing(s=1)" else value
                cases.append({"kind": kind, "call": call, "stack": name, "value": value.tolist()})
    rows = {name: x.tolist() for name, x in stacks.items()}
    FILE.write_text(json.dumps({"from": peers.PACKAGES["byzfl"], "stacks": rows, "cases": cases}) + "\n")
    print(f"{len(cases)} values in {FILE.name}, {FILE.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
