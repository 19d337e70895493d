"""Every rule against `torch.mean(x, 0)` and against ByzFL, on the same stack in one run on the CPU.

python benchmarks/aggregate.py [--n 20] [--d 1199882] [--json PATH]
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

import torch

import peers
import robagg as ra
from robagg import kernels
from timing import describe_machine, take_turns

OURS = {
    "mean": 2.5,
    "cm": 2.0,
    "tm": 2.0,
    "krum": 2.5,
    "multikrum": 2.5,
    "rfa": 2.5,
    "huber": 2.5,
    "cc(iterations=10)": 2.5,
    "mca": 2.5,
    "tq": 2.5,
    "nnm >> tq": None,
    "bucketing >> tq": None,
}
"""Rule -> the most times `torch.mean` it should take."""

PEERS = {
    "cm": "Median()",
    "tm": "TrMean(f=F)",
    "krum": "Krum(f=F)",
    "rfa": "GeometricMedian(T=10)",
    "cc(iterations=10)": "CenteredClipping(L=10, tau=10.0)",
    "nnm >> tq": "NNM(f=F)",
}
LEAST_GAIN = 8.0


def measure(n: int, d: int, seconds: float, with_peers: bool) -> dict[str, Any]:
    """Times of everything on one stack (n, d)."""
    f = 3 * n // 10
    torch.manual_seed(0)
    x = torch.randn(n, d)
    subjects: dict[str, Any] = {"torch.mean": lambda: x.mean(0)}
    subjects |= {text: partial(ra.parse(text, f=f), x) for text in OURS}
    times = take_turns(subjects, seconds=seconds)
    byzfl = peers.load_byzfl() if with_peers else None
    theirs = {}
    if byzfl is not None:
        for text, call in PEERS.items():
            rule = eval(f"byzfl.{call}", {"byzfl": byzfl, "F": f})
            pair = {"peer": partial(rule, x), "ours": subjects[text]}
            middle = take_turns(pair, seconds=seconds / 4, least=3)
            theirs[text] = {"call": call, "seconds": middle["peer"], "gain": middle["peer"] / middle["ours"]}
    base = times["torch.mean"]
    return {
        "n": n,
        "d": d,
        "f": f,
        "kernel": kernels.active("cpu"),
        "mean_ms": 1000 * base,
        "rules": {text: {"ms": 1000 * times[text], "ratio": times[text] / base, "target": OURS[text]} for text in OURS},
        "peers": theirs,
    }


def show(result: dict[str, Any]) -> None:
    print(f"\nn={result['n']}, d={result['d']:,}, float32, {result['kernel']}; mean(x, 0): {result['mean_ms']:.2f} ms")
    print(f"{'rule':<20}{'ms':>9}{'x mean':>9}{'target':>9}   {'against ByzFL':<34}{'times faster':>13}{'target':>8}")
    for text, row in result["rules"].items():
        target = "" if row["target"] is None else f"{row['target']:.1f}"
        peer = result["peers"].get(text)
        more = f"   {peer['call']:<34}{peer['gain']:>13.1f}{LEAST_GAIN:>8.0f}" if peer else ""
        print(f"{text:<20}{row['ms']:>9.2f}{row['ratio']:>9.2f}{target:>9}{more}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=20)
    parser.add_argument("--d", type=int, default=1_199_882)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    result = measure(options.n, options.d, options.seconds, not options.no_peers)
    show(result)
    if options.json:
        options.json.write_text(json.dumps({"machine": describe_machine(), **result}, indent=1) + "\n")


if __name__ == "__main__":
    main()
