"""How time grows on a CPU with the number of clients n and of values d: rules in turn with the mean.

python benchmarks/growth.py [--most 100000000] [--only many] [--json PATH]
"""

from __future__ import annotations

import argparse
import gc
import json
from functools import partial
from pathlib import Path
from typing import Any

import torch

import robagg as ra
from robagg import kernels
from timing import describe_machine, take_turns

RULES = ("cm", "krum", "tq")
MANY = ("cm", "krum", "tq", "caf", "spectralfilter", "nnm >> krum")
"""Rules for many clients: distances are projected there."""
SHAPES = {
    "n": [(n, 1_000_000) for n in (5, 10, 20, 32, 64, 100, 200)],
    # 20 rows of 10^8 values would be 8 GB: there it is five, and the mean beside it is that of five.
    "d": [(20, 10**4), (20, 10**5), (20, 10**6), (20, 10**7), (5, 10**8)],
    "many": [(1000, 100_000), (3000, 20_000)],
}


def measure(n: int, d: int, seconds: float, rules: tuple[str, ...]) -> dict[str, Any]:
    f = 3 * n // 10
    torch.manual_seed(0)
    x = torch.randn(n, d)
    subjects = {"mean": partial(x.mean, 0)} | {text: partial(ra.parse(text, f=f), x) for text in rules}
    times = take_turns(subjects, seconds=seconds, least=3)
    return {"n": n, "d": d, "f": f, "ms": {name: 1000 * taken for name, taken in times.items()}}


def show(row: dict[str, Any]) -> None:
    base = row["ms"]["mean"]
    cells = "".join(f"{ms:>12.2f} ms{ms / base:>7.2f}" for text, ms in row["ms"].items() if text != "mean")
    print(f"{row['n']:>5}{row['d']:>12,}{base:>12.2f} ms{cells}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each shape")
    parser.add_argument("--most", type=int, default=500_000_000, help="leave out stacks of more numbers than that")
    parser.add_argument("--only", choices=SHAPES, help="these shapes; the others stay as they are in the JSON file")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    record: dict[str, Any] = {"machine": describe_machine(), "kernel": kernels.active("cpu")}
    print(f"\ngrowth, {record['kernel']}: milliseconds, and times the mean")
    if options.only and options.json and options.json.exists():
        record |= json.loads(options.json.read_text())
    for name, shapes in SHAPES.items():
        if options.only not in (None, name):
            continue
        record[name] = []
        rules = MANY if name == "many" else RULES
        print(f"{'n':>5}{'d':>12}{'mean':>15}" + "".join(f"{text:>15}{'x mean':>7}" for text in rules))
        for n, d in shapes:
            if n * d <= options.most:
                record[name].append(measure(n, d, options.seconds, rules))
                show(record[name][-1])
            gc.collect()
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
