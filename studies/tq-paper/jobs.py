"""Many runs of cells of the paper, in several processes, a JSON line each."""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from robagg import Dataset, Task, parse
from robagg.attacks import attacks
from robagg.splits import splits
from robagg.tasks import federate
from robagg.training import Federation

RULES = ("rfa", "tm", "cm", "krum", "huber", "mca", "tq")
ATTACKS = ("ga", "alie", "bf", "ipm", "lf", "mimic")
"""Of the paper's tables, in their order."""


def begin(
    task: Task, rule: str, attack: str, *, f: int, rho: float, seed: int, data: str, device: str
) -> tuple[Federation, Dataset]:
    """A cell before its first round."""
    parts = parse(rule, f=f), attacks.parse(attack), splits.parse(f"rho(rho={rho})")
    return federate(task, *parts, n=task.n, f=f, seed=seed, root=data, device=device)


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """The options that all studies have."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of the data sets")
    parser.add_argument("--json", required=True, type=Path, help="where the lines go")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--workers", type=int, default=1)
    return parser


def gather(
    work: Callable[..., dict[str, Any]], jobs: list[tuple[Any, ...]], names: tuple[str, ...], args: argparse.Namespace
) -> None:
    """Do the jobs whose values, by these names, no line of `args.json` has, in `args.workers` processes; a line each.

    `work` is given a job's values, and `args.data` and `args.device`.
    """
    there = [json.loads(line) for line in args.json.read_text().splitlines()] if args.json.exists() else []
    done = {tuple(record[name] for name in names) for record in there}
    left = [job for job in jobs if job not in done]
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(args.workers, mp_context=fresh) as pool, args.json.open("a", encoding="utf-8") as out:
        waiting = [pool.submit(work, *job, args.data, args.device) for job in left]
        for count, future in enumerate(as_completed(waiting), start=1):
            found = future.result()
            print(f"[{count}/{len(left)}]", *found.values(), flush=True)
            out.write(json.dumps(found) + "\n")
            out.flush()
