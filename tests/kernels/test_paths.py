"""Which path runs: rules name formulas that kernels know, and the environment can ask for the reference."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

import robagg as ra
from robagg import Pull, Sketch, kernels
from robagg._core.iterative import IterativeRule
from robagg._core.rule import stages
from robagg.kernels.cuda_gram import FORMULAS


def test_rules_state_formulas_that_all_kernels_know_in_one_order() -> None:
    stated = {cls.__dict__.get("kernel") for cls in stages.classes().values() if issubclass(cls, IterativeRule)}
    assert stated - {None} == set(FORMULAS)
    header = Path(kernels.__file__).with_name("cpu_walk.h").read_text()
    names = re.search(r"enum \{ (.*) \};", header)
    assert names is not None and tuple(names[1].lower().split(", ")) == FORMULAS


@dataclass(frozen=True)
class Half(ra.TQ):
    """TQ with half of the pull."""

    def pull(self, sketch: Sketch, c: Tensor, squared: Tensor) -> Pull:
        whole = super().pull(sketch, c, squared)
        return Pull(whole.strength / 2, whole.tau, whole.outside)


def test_a_subclass_with_a_pull_of_its_own_does_not_run_its_parents_kernel() -> None:
    x = torch.tensor([[0.0], [1.0], [2.0], [4.0], [7.0]], dtype=torch.float64)
    assert Half(f=0, iterations=1)(x).item() == pytest.approx(2 + (x.mean() - 2).item() / 2)


CODE = """
import torch, robagg
from robagg import kernels
x = torch.randn(9, 2000, generator=torch.Generator().manual_seed(0))
print(kernels.active(), kernels.choose(x).__name__.rsplit(".", 1)[1], robagg.parse("nnm >> tq", f=2)(x).norm().item())
"""


@pytest.mark.parametrize("choice", ["", "reference", "fortran"])
def test_the_environment_can_ask_for_the_reference(choice: str) -> None:
    env = os.environ | {"ROBAGG_KERNEL": choice}
    done = subprocess.run([sys.executable, "-W", "error", "-c", CODE], env=env, capture_output=True, text=True)
    if choice == "fortran":
        assert done.returncode and "ROBAGG_KERNEL must be 'reference' or not set, got 'fortran'" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    path, module, norm = done.stdout.rsplit(maxsplit=2)
    assert (path == "torch", module) == ((True, "reference") if choice else (False, "cpu"))
    x = torch.randn(9, 2000, generator=torch.Generator().manual_seed(0))
    assert float(norm) == pytest.approx(ra.parse("nnm >> tq", f=2)(x).norm().item(), rel=1e-5)
