"""What the way of evaluating does to cells of table5 at f=4: `python benchmarks/evaluation.py --data DIR --json FILE`.

The paper states neither BatchNorm's policy nor its augmentation. Training normalises by each client's own batch, so
that the policy matters in evaluation alone: each run is trained once, as stated, and evaluated with running statistics
that were moved in every way there is, by the statistics of test batches of several sizes, and on test images that are
cropped and flipped as those in training. One JSON line a run, as they come; a run that is there already is not done
again.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from jobs import ATTACKS, gather
from robagg.attacks import attacks
from robagg.data import splits
from robagg.lab.paper import tq_table3
from robagg.models import batchnorm
from robagg.plugins import load_plugin
from robagg.rule import parse
from robagg.task import federate, tasks
from robagg.train import Loop

F = 4
BATCHES = (32, 64, 128, 256, 1000)


def run(cell: str, task_text: str, seed: int, data: str, device: str) -> dict[str, Any]:
    for path in tq_table3.EXPERIMENT.plugins:  # TQ from the last aggregate
        load_plugin(path)
    task, (rule, attack) = tasks.parse(task_text), cell.split()
    federation, dataset = federate(
        task,
        parse(rule, f=F),
        attacks.parse(attack),
        splits.parse("rho(rho=0.4)"),
        n=task.n,
        f=F,
        seed=seed,
        root=data,
        device=device,
    )
    moved = {how: federation.running.clone() for how in batchnorm.UPDATES}
    compute = federation._compute

    def watch(asked: list[int]) -> tuple[Tensor, Tensor]:
        losses, statistics = compute(asked)
        for how, running in moved.items():
            running.copy_(batchnorm.update(running, statistics[: federation.h], how))
        return losses, statistics

    federation._compute = watch
    loop = Loop(federation, (dataset.test_x, dataset.test_y))
    model = loop.run().model
    assert loop.test is not None
    x, y = loop.test
    found: dict[str, Any] = {"cell": cell, "task": task_text, "seed": seed}
    for how, running in moved.items():
        federation.running = running
        found[how] = federation.accuracy(loop.test)
    batchnorm.apply(model, moved["mean"])
    if task.transform is not None:
        cropped = task.transform(x, torch.Generator(x.device).manual_seed(0))
        found["cropped"] = measure(model.eval(), cropped, y, 1000)
    for size in BATCHES:
        found[f"batches of {size}"] = measure(model.train(), x, y, size)
    return found


@torch.no_grad()
def measure(model: nn.Module, x: Tensor, y: Tensor, size: int) -> float:
    """Percent of the images that a model gets right, so many at a time."""
    right = sum(int((model(a).argmax(1) == b).sum()) for a, b in zip(x.split(size), y.split(size), strict=True))
    return 100 * right / len(y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of the data sets")
    parser.add_argument("--json", required=True, type=Path, help="where the lines go")
    parser.add_argument("--cells", default=",".join(f"tq {attack}" for attack in ATTACKS), help="rfa ga,tm lf")
    parser.add_argument("--tasks", nargs="+", default=["cifar10"], help="also cifar10(border='black') and the like")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    jobs = [(*job, seed) for seed in range(args.seeds) for job in product(args.cells.split(","), args.tasks)]
    gather(run, jobs, ("cell", "task", "seed"), args)


if __name__ == "__main__":
    main()
