"""Where robagg and ByzFL define a rule alike, they give the same value: shown on random stacks, side by side.

python benchmarks/agree.py
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import peers
import robagg as ra

F = 6


def list_pairs(byzfl: Any) -> dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]]:
    """Name -> our rule and theirs, with equal parameters."""
    return {
        "Average": (ra.Mean(f=F), byzfl.Average()),
        "Median": (ra.CM(f=F), byzfl.Median()),
        "TrMean": (ra.TM(f=F), byzfl.TrMean(f=F)),
        "Krum": (ra.Krum(f=F), byzfl.Krum(f=F)),
        "MultiKrum": (ra.MultiKrum(f=F), byzfl.MultiKrum(f=F)),
        "GeometricMedian(T=3)": (ra.RFA(f=F, iterations=3), byzfl.GeometricMedian(nu=0.1, T=3)),
        "GeometricMedian(T=10)": (ra.RFA(f=F, iterations=10), byzfl.GeometricMedian(nu=0.1, T=10)),
        "CenteredClipping(L=1)": (ra.CC(f=F, tau=10.0), lambda x: byzfl.CenteredClipping(L=1, tau=10.0)(x)),
        "CenteredClipping(L=10)": (
            ra.CC(f=F, tau=10.0, iterations=10),
            lambda x: byzfl.CenteredClipping(L=10, tau=10.0)(x),
        ),
        "NNM, then Median": (ra.NNM(f=F) >> ra.CM(f=F), lambda x: byzfl.Median()(byzfl.NNM(f=F)(x))),
        "NNM, then TrMean": (ra.NNM(f=F) >> ra.TM(f=F), lambda x: byzfl.TrMean(f=F)(byzfl.NNM(f=F)(x))),
        "Clipping(2), then Average": (
            ra.Clipping(norm=2.0) >> ra.Mean(f=F),
            lambda x: byzfl.Average()(byzfl.Clipping(c=2.0)(x.clone())),
        ),
    }


def main() -> int:
    byzfl = peers.load_byzfl()
    if byzfl is None:
        return 0
    torch.manual_seed(0)
    stacks = [torch.randn(20, 1000, dtype=torch.float64) for _ in range(20)]
    for x in stacks[10:]:
        x[14:] = 5 * x[14:] + 3
    print(f"{'rule of ByzFL':<28}{'largest relative difference over 20 stacks':>44}")
    worst = 0.0
    for name, (ours, theirs) in list_pairs(byzfl).items():
        gap = max(float((ours(x) - theirs(x)).norm() / theirs(x).norm()) for x in stacks)
        worst = max(worst, gap)
        print(f"{name:<28}{gap:>44.1e}")
    print("equal to float32 rounding, which is what ByzFL computes in" if worst < 1e-6 else "NOT equal")
    return 0 if worst < 1e-6 else 1


if __name__ == "__main__":
    sys.exit(main())
