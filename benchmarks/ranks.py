"""What a robust gradient costs: the DDP hook beside one all_reduce and beside plain DDP, and columns over more ranks.

python benchmarks/ranks.py [--part hook|step|growth] [--json PATH]     (the file keeps other parts)
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import robagg as ra
from robagg.distributed import HookState, Sharded, robust_hook
from timing import describe_machine

Subjects = dict[str, Callable[[], Any]]

RANKS = 4
PARAMETERS = 10_000_000
BUCKETS = 2
RULES = ("tq(f=1)", "cm(f=1)", "krum(f=1)", "nnm(f=1) >> tq(f=1)")
GROWTH = (1, 2, 4)
ROWS, COLUMNS = 20, 4_000_000


class Bucket:
    """A part of a gradient, as DDP hands it to a hook."""

    def __init__(self, part: Tensor, index: int) -> None:
        self.part, self.place = part, index

    def buffer(self) -> Tensor:
        return self.part

    def index(self) -> int:
        return self.place

    def is_last(self) -> bool:
        return self.place == BUCKETS - 1

    def parameters(self) -> list[Tensor]:
        return [self.part]


def take_turns(subjects: Subjects, rounds: int, prepare: Callable[[], Any]) -> dict[str, float]:
    """Median milliseconds of each, from when all ranks are ready until all are done; the subjects take turns."""
    times: dict[str, list[float]] = {name: [] for name in subjects}
    for k in range(rounds + 1):
        for name, run in subjects.items():
            prepare()
            dist.barrier()
            begin = time.perf_counter()
            run()
            dist.barrier()
            if k:
                times[name].append(1000 * (time.perf_counter() - begin))
    return {name: statistics.median(taken) for name, taken in times.items()}


def measure_hook(rounds: int) -> dict[str, float]:
    """The hook on a gradient in two buckets, against one all_reduce of as many numbers."""
    gradient = torch.randn(PARAMETERS)
    first = gradient.clone()
    buckets = [Bucket(part, k) for k, part in enumerate(gradient.split(PARAMETERS // BUCKETS))]

    def robust(rule: str, verdicts: bool = False) -> Callable[[], Any]:
        state = HookState(ra.parse(rule), verdicts=verdicts)
        return lambda: [future.wait() for future in [robust_hook(state, bucket) for bucket in buckets]]

    subjects: Subjects = {"all_reduce": lambda: dist.all_reduce(gradient)}
    subjects |= {rule: robust(rule) for rule in RULES}
    subjects |= {f"{rule}, with verdicts": robust(rule, True) for rule in RULES[:2]}
    return take_turns(subjects, rounds, lambda: gradient.copy_(first))


def measure_step(rounds: int) -> dict[str, float]:
    """A whole step of an MLP of 10 million parameters on 128 images a rank, and of a small one on digits."""
    subjects: Subjects = {}
    for name, sizes in (("10M", (784, 2048, 2048, 2048, 10)), ("digits", (64, 64, 64, 10))):
        x, y = torch.randn(128, sizes[0]), torch.randint(10, (128,))
        for rule, verdicts in ((None, False), ("tq(f=1)", False), ("tq(f=1)", True), ("cm(f=1)", True)):
            layers = [layer for a, b in pairwise(sizes) for layer in (nn.Linear(a, b), nn.ReLU())]
            model = DistributedDataParallel(nn.Sequential(*layers[:-1]))
            if rule is not None:
                model.register_comm_hook(HookState(ra.parse(rule), verdicts=verdicts), robust_hook)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

            def step(model: nn.Module = model, optimizer: Any = optimizer, x: Tensor = x, y: Tensor = y) -> None:
                optimizer.zero_grad(set_to_none=False)
                nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()

            step()  # DDP deals its buckets out again after the first
            subjects[f"{name}, {rule or 'plain DDP'}{', with verdicts' if verdicts else ''}"] = step
    return take_turns(subjects, rounds, lambda: None)


def measure_growth(rounds: int) -> dict[str, float]:
    """One stack whose columns lie on 1, 2 and 4 ranks, each with one thread; the other ranks wait."""
    groups = {count: dist.new_group(list(range(count))) for count in GROWTH}
    rank, subjects = dist.get_rank(), {}
    for count in GROWTH:
        own = torch.randn(ROWS, COLUMNS // count) if rank < count else None
        for text in ("mean", "tq(f=6)", "cm(f=6)", "nnm(f=6) >> tq(f=6)"):
            rule = Sharded(ra.parse(text), groups[count])
            subjects[f"{text}, {count}"] = lambda rule=rule, own=own: None if own is None else rule(own)
    return take_turns(subjects, rounds, lambda: None)


PARTS: dict[str, Callable[[int], dict[str, float]]] = {
    "hook": measure_hook,
    "step": measure_step,
    "growth": measure_growth,
}


def work(rank: int, store: str, part: str, rounds: int, answer: Any) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    torch.manual_seed(rank)
    found = PARTS[part](rounds)
    if rank == 0:
        answer.put(found)
    dist.barrier()
    dist.destroy_process_group()


def measure(part: str, rounds: int) -> dict[str, float]:
    spawn = torch.multiprocessing.get_context("spawn")
    answer = spawn.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "store")
        torch.multiprocessing.spawn(work, (store, part, rounds, answer), nprocs=RANKS)  # type: ignore[no-untyped-call]
        found: dict[str, float] = answer.get()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=tuple(PARTS), help="this one alone")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    there = options.json is not None and options.json.exists()
    record: dict[str, Any] = json.loads(options.json.read_text()) if there else {}
    record |= {"ranks": RANKS, "parameters": PARAMETERS, "rows": ROWS, "columns": COLUMNS}
    for part in PARTS if options.part is None else [options.part]:
        machine = describe_machine() | {"threads": 1}
        record[part] = {"machine": machine, "ms": measure(part, options.rounds)}
        for name, ms in record[part]["ms"].items():
            print(f"{part:>8}  {name:<32}{ms:>10.2f} ms", flush=True)
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
