"""Peak memory of each rule beyond its input, and of ByzFL's and byzpy's, each in a process of its own.

python benchmarks/memory.py [--n 20] [--d 1199882] [--json PATH]
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

import peers
import robagg as ra
from aggregate import RULES
from timing import describe_machine

MARK = Path("/proc/self/clear_refs")


def measure_peak(run: Callable[[], Any]) -> float:
    """MiB by which one call raises this process's memory, result included. Only Linux tells it."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what was freed before must not serve unseen
    # getrusage would tell the peak of the process that started this one; the kernel's own mark can be set back.
    MARK.write_text("5")
    before = read_peak()
    kept = run()
    peak = read_peak()
    del kept
    return peak - before


def read_peak() -> float:
    """The peak of this process since the mark was set back, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def make(library: str, rule: str, n: int) -> Callable[[torch.Tensor], Any]:
    f = 3 * n // 10
    if library == "ByzFL":
        return peers.take_byzfl(peers.load_byzfl(), rule, n, f).run
    if library == "byzpy":
        return peers.take_byzpy(peers.load_byzpy(), rule, n, f).run
    return ra.parse(rule, f=f)


def measure_one(library: str, rule: str, n: int, d: int) -> float:
    torch.manual_seed(0)
    make(library, rule, n)(torch.randn(n, 5000))  # threads and libraries are up before the mark is set
    x, run = torch.randn(n, d), make(library, rule, n)  # made anew: some remember
    return measure_peak(lambda: run(x))


def ask(library: str, rule: str, n: int, d: int) -> float | str:
    """`measure_one` in another process; the last line of its complaint where it fails."""
    command = [sys.executable, __file__, "--one", library, rule, "--n", str(n), "--d", str(d)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or ["it ended without a word"])[-1][:200]
    return float(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=20)
    parser.add_argument("--d", type=int, default=1_199_882)
    parser.add_argument("--one", nargs=2, metavar=("LIBRARY", "RULE"), help="this one, in this process")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if not MARK.exists():
        print("peak memory is measured on Linux only: nothing was measured")
        return
    if options.one:
        print(json.dumps(measure_one(*options.one, options.n, options.d)))
        return
    todo = [("robagg", rule) for rule in RULES]
    todo += [("ByzFL", rule) for rule in peers.BYZFL if peers.load_byzfl() is not None]
    todo += [("byzpy", rule) for rule in peers.BYZPY if peers.load_byzpy() is not None]
    machine = describe_machine()
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda one: ask(*one, options.n, options.d), todo))
    taken = 4 * options.n * options.d / 2**20
    print(f"\npeak memory beside a stack of {taken:.0f} MiB (n={options.n}, d={options.d:,}, float32), result included")
    record: dict[str, Any] = {"machine": machine, "n": options.n, "d": options.d, "stack": taken, "mib": {}}
    for (library, rule), mib in zip(todo, found, strict=True):
        record["mib"].setdefault(library, {})[rule] = mib
        print(f"{library:<8}{rule:<20}" + (f"{mib:>9.1f} MiB" if isinstance(mib, float) else f"cannot run: {mib}"))
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
