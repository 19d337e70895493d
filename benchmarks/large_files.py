"""Aggregating files larger than memory: peak memory, and time beside that of reading the files twice.

python benchmarks/large_files.py [--n 20] [--size 1000000000] [--memory 2000000000] [--rules tq ...]
    [--folder DIR] [--keep] [--json PATH]
python benchmarks/large_files.py --table

Makes `n` files of `size` bytes, and reads and aggregates them with nothing of them in the page cache. Each aggregation
runs in a process of its own, whose peak counts Python and torch too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import robagg as ra
from memory import read_peak
from robagg.files import Entry, aggregate_files
from robagg.files.writing import Writer
from texts import tabulate
from timing import describe_machine

RULES = ("tq", "nnm >> tq")
TENSORS = 25
BLOCK = 8 << 20
COMMITTED = Path(__file__).parent / "results" / "cpu-files.json"


def make(folder: Path, n: int, size: int) -> list[Path]:
    """n models that differ by noise, of which a fifth lie far away."""
    count = size // 4 // TENSORS
    entries = {f"layers.{k}.weight": Entry(torch.float32, (count,)) for k in range(TENSORS)}
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(min(1 << 22, count) + n, generator=generator)
    paths = [folder / f"client-{k:02}.safetensors" for k in range(n)]
    for k, path in enumerate(paths):
        if path.exists() and abs(path.stat().st_size - size) < 1 << 16:
            continue
        with Writer(path, entries) as writer:
            for name in entries:
                for start in range(0, count, len(noise) - n):
                    part = noise[k : k + min(len(noise) - n, count - start)] * (10 if k >= n - n // 5 else 1)
                    writer.write(name, start, part)
    return paths


def forget(paths: list[Path]) -> None:
    """Put the files out of the page cache."""
    os.sync()
    for path in paths:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_twice(paths: list[Path]) -> float:
    forget(paths)
    buffer = memoryview(bytearray(BLOCK))
    begin = time.perf_counter()
    for _ in range(2):
        for path in paths:
            with path.open("rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass
    return time.perf_counter() - begin


def aggregate_one(rule: str, paths: list[Path], memory: int) -> dict[str, float | int]:
    """In this process: seconds, peak in bytes, passes over the files."""
    passes = set()
    with tempfile.TemporaryDirectory(dir=paths[0].parent) as folder:
        begin = time.perf_counter()
        verdict = aggregate_files(
            paths,
            Path(folder) / "out.safetensors",
            ra.parse(rule, f=len(paths) // 5),
            memory=memory,
            progress=lambda number, done, total: passes.add(number),
        )
        seconds = time.perf_counter() - begin
    return {
        "seconds": seconds,
        "peak": int(read_peak() * 2**20),
        "passes": len(passes),
        "not_believed": len(verdict.not_believed),
    }


def write_table(result: dict[str, Any]) -> str:
    """The figures as docs/scale.md has them."""
    rows = [
        [
            f"`{rule}`",
            str(row["passes"]),
            f"{row['seconds']:.0f} s",
            f"{row['ratio']:.2f}",
            f"{row['peak'] / 1e9:.2f} GB",
        ]
        for rule, row in result["rules"].items()
    ]
    files = f"{result['n']} files of {result['size'] / 1e9:g} GB, `--memory {result['memory'] / 1e9:g}GB`"
    twice = f"of reading twice ({result['read_twice']:.0f} s)"
    return tabulate([files, "passes", "time", twice, "peak memory of the process"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=20)
    parser.add_argument("--size", type=int, default=10**9)
    parser.add_argument("--memory", type=int, default=2 * 10**9)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--rules", nargs="+", default=RULES)
    parser.add_argument("--keep", action="store_true", help="leave the files there")
    parser.add_argument("--only-make", action="store_true")
    parser.add_argument("--one", metavar="RULE", help="this one, in this process")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", action="store_true", help="print what docs/scale.md says of the committed figures")
    options = parser.parse_args()
    if options.table:
        print(write_table(json.loads(COMMITTED.read_text())))
        return
    folder = options.folder or Path(tempfile.gettempdir()) / "robagg-files"
    folder.mkdir(parents=True, exist_ok=True)
    paths = make(folder, options.n, options.size)
    if options.only_make:
        return
    if options.one:
        print(json.dumps(aggregate_one(options.one, paths, options.memory)))
        return
    machine = describe_machine()
    twice = read_twice(paths)
    print(f"reading twice: {twice:.1f} s", flush=True)
    found = {}
    for rule in options.rules:
        forget(paths)
        command = [sys.executable, __file__, "--one", rule, "--n", str(options.n), "--size", str(options.size)]
        command += ["--memory", str(options.memory), "--folder", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found[rule] = json.loads(done.stdout.splitlines()[-1])
        found[rule]["ratio"] = found[rule]["seconds"] / twice
        print(f"{rule}: {found[rule]}", flush=True)
    if options.json:
        result = {
            "machine": machine,
            "n": options.n,
            "size": options.size,
            "memory": options.memory,
            "read_twice": twice,
            "rules": found,
        }
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    if not options.keep:
        for path in paths:
            path.unlink()


if __name__ == "__main__":
    main()
