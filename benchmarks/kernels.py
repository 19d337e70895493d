"""What the passes cost on this machine's CPU, as ratios to `torch.mean(x, 0)` taken in turn in the same run.

    python benchmarks/kernels.py [repeats] [--json PATH]

`tq` is a sketch and a combine one after the other: TQ without its n x n loop. Each ratio is median over median,
and best over best in brackets.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from robagg.kernels import cpu
from timing import describe_machine

SHAPES = [(20, 1_199_882), (25, 11_000_000), (64, 1_000_000)]


def passes(x: torch.Tensor) -> dict[str, Callable[[], object]]:
    n, d = x.shape
    vectors = [torch.randn(d), *x]
    weights = torch.full((n + 1,), 1 / (n + 1), dtype=torch.float64)
    neighbours = torch.zeros(n, n, dtype=torch.float64)
    for i in range(n):  # as NNM mixes for f = 0.3 n
        neighbours[i, torch.randperm(n)[: n - int(0.3 * n)]] = 1 / (n - int(0.3 * n))
    compute = torch.float32

    def tq() -> None:
        cpu.sketch(x, compute=compute)
        cpu.combine(vectors, weights, compute=compute)

    return {
        "mean": lambda: torch.mean(x, 0),
        "sketch": lambda: cpu.sketch(x, compute=compute),
        "combine": lambda: cpu.combine(vectors, weights, compute=compute),
        "tq": tq,
        "median": lambda: cpu.trim(x, (n - 1) // 2, n // 2 + 1, compute=compute),
        "trimmed": lambda: cpu.trim(x, n // 4, n - n // 4, compute=compute),
        "mixed sketch": lambda: cpu.sketch(x, mix=neighbours, compute=compute),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repeats", type=int, nargs="?", default=15)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if not cpu.available():
        print("no C kernel here (no compiler?): nothing was measured")
        return
    record: dict[str, Any] = {"machine": describe_machine(), "kernel": cpu.isa(), "ratios": {}}
    print(f"{cpu.isa()}, {torch.get_num_threads()} threads")
    for n, d in SHAPES:
        x = torch.randn(n, d)
        calls = passes(x)
        took: dict[str, list[float]] = {name: [] for name in calls}
        for name, call in calls.items():
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            call()
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 - 4e-6 * d
            if name != "mean" and grown > 1:
                print(f"  {name}: peak memory grew by {grown:.1f} MB beyond a result")
        for _ in range(options.repeats):
            for name, call in calls.items():
                start = time.perf_counter()
                call()
                took[name].append(time.perf_counter() - start)
        mean, best = statistics.median(took["mean"]), min(took["mean"])
        print(f"n={n} d={d}: mean {mean * 1e3:.2f} ms ({best * 1e3:.2f})")
        print("  " + ", ".join(f"{k} {statistics.median(v) / mean:.2f} ({min(v) / best:.2f})" for k, v in took.items()))
        record["ratios"][f"n={n}"] = {k: statistics.median(v) / mean for k, v in took.items()}
        del x, calls
        gc.collect()
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
