"""ByzFL's names mean what they mean there: values that ByzFL computed itself (benchmarks/byzfl_values.py)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import robagg as ra
from robagg import attacks
from robagg._core.rule import stages

SAVED = json.loads((Path(__file__).parent / "byzfl.json").read_text())
STACKS = {name: torch.tensor(rows, dtype=torch.float64) for name, rows in SAVED["stacks"].items()}


def run(kind: str, call: str, x: Tensor) -> Tensor:
    """The same call, read by robagg."""
    generator = torch.Generator().manual_seed(0)
    if kind == "attack":
        attack = attacks.parse(call)
        setup = attacks.Setup(len(x) + 1, 1, x.shape[1], dtype=x.dtype, generator=generator)
        return attack.craft(attacks.View(x, None, n=len(x) + 1, f=1, generator=generator), attack.start(setup))[0][0]
    if trusted := re.fullmatch(r"MoNNA\(f=(\d+), idx=(\d+)\)", call):  # the trusted row comes with the call here
        return ra.MoNNA(f=int(trusted[1]))(x, root=x[int(trusted[2])])  # type: ignore[no-any-return]
    stage: Any = stages.parse(call)
    value: Tensor = stage(x, generator=generator)
    return (
        value[sorted(range(len(value)), key=lambda i: value[i].tolist()[::-1])] if call == "Bucketing(s=1)" else value
    )


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("kind", ["rule", "mixer", "attack"])
def test_the_same_call_gives_byzfls_value(kind: str, name: str) -> None:
    cases = [case for case in SAVED["cases"] if (case["kind"], case["stack"]) == (kind, name)]
    assert len(cases) >= 8
    wrong = []
    for case in cases:
        value, wanted = run(kind, case["call"], STACKS[name]), torch.tensor(case["value"], dtype=torch.float64)
        if value.shape != wanted.shape or not torch.allclose(value, wanted, rtol=1e-9, atol=1e-9):
            wrong.append(case["call"])
    assert wrong == []


def test_every_rule_and_pre_aggregator_of_byzfl_but_caf_is_compared() -> None:
    calls = {case["call"].partition("(")[0] for case in SAVED["cases"] if case["kind"] != "attack"}
    assert calls == {
        *("Average", "Median", "TrMean", "GeometricMedian", "Krum", "MultiKrum", "CenteredClipping", "MDA", "MoNNA"),
        *("Meamed", "SMEA", "NNM", "Bucketing", "Clipping", "ARC"),
    }
