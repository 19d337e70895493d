"""Where robagg and ByzFL or byzpy define a rule alike, they give the same value: random stacks, side by side.

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
Pairs = dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]]


def pair_byzfl(byzfl: Any) -> Pairs:
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


def pair_byzpy(byzpy: Any) -> Pairs:
    """The same for byzpy. Its geometric median starts at the median and not at the origin, so both run to the end."""
    median, trimmed = byzpy.CoordinateWiseMedian(), byzpy.CoordinateWiseTrimmedMean(f=F)
    mixing, clipping = byzpy.NearestNeighborMixing(f=F), byzpy.Clipping(threshold=2.0)

    def plain(made: Any) -> Callable[[Tensor], Tensor]:
        return lambda x: made.aggregate(list(x))

    return {
        # Of an even number of values byzpy takes the lower middle one, we the mean of both: so an odd number.
        "Median, n odd": (lambda x: ra.CM(f=F)(x[1:]), lambda x: median.aggregate(list(x[1:]))),
        "TrimmedMean": (ra.TM(f=F), plain(trimmed)),
        "Krum": (ra.Krum(f=F), plain(byzpy.Krum(f=F))),
        "MultiKrum(q=n-f)": (ra.MultiKrum(f=F), plain(byzpy.MultiKrum(f=F, q=20 - F))),
        "GeometricMedian, converged": (
            ra.RFA(f=F, iterations=200),
            plain(byzpy.GeometricMedian(tol=1e-12, max_iter=200)),
        ),
        "CenteredClipping(M=1)": (ra.CC(f=F, tau=10.0), plain(byzpy.CenteredClipping(c_tau=10.0, M=1, init="zero"))),
        "CenteredClipping(M=10)": (
            ra.CC(f=F, tau=10.0, iterations=10),
            plain(byzpy.CenteredClipping(c_tau=10.0, M=10, init="zero")),
        ),
        "NNM, then TrimmedMean": (
            ra.NNM(f=F) >> ra.TM(f=F),
            lambda x: trimmed.aggregate(mixing.pre_aggregate(list(x))),
        ),
        "Clipping(2), then mean": (
            ra.Clipping(norm=2.0) >> ra.Mean(f=F),
            lambda x: torch.stack(clipping.pre_aggregate(list(x))).mean(0),
        ),
    }


def compare(library: str, pairs: Pairs, stacks: list[Tensor]) -> bool:
    print(f"{'rule of ' + library:<28}{'largest relative difference over 20 stacks':>44}")
    worst = 0.0
    for name, (ours, theirs) in pairs.items():
        gap = max(float((ours(x) - theirs(x)).norm() / theirs(x).norm()) for x in stacks)
        worst = max(worst, gap)
        print(f"{name:<28}{gap:>44.1e}")
    print("equal to float32 rounding\n" if worst < 1e-6 else "NOT equal\n")
    return worst < 1e-6


def main() -> int:
    torch.manual_seed(0)
    stacks = [torch.randn(20, 1000, dtype=torch.float64) for _ in range(20)]
    for x in stacks[10:]:
        x[14:] = 5 * x[14:] + 3
    good = True
    if (byzfl := peers.load_byzfl()) is not None:
        good &= compare("ByzFL", pair_byzfl(byzfl), stacks)
    if (byzpy := peers.load_byzpy()) is not None:
        good &= compare("byzpy", pair_byzpy(byzpy), stacks)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
