"""What the way of evaluating does to cells of table5 at f=4: `python benchmarks/evaluation.py --data DIR --json FILE`.

Each run is trained once, as stated, and evaluated with running statistics of BatchNorm, by the statistics of test
batches of several sizes (the last batch is smaller), and on test images that are cropped and flipped as those in
training. One JSON line a run, as they come; a run that is there already is not done again.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from jobs import ATTACKS, begin, gather
from robagg.lab.plugins import load_plugin
from robagg.models.batchnorm import ClientBatchNorm
from robagg.paper import tq_table3
from robagg.tasks.base import tasks
from robagg.training import Loop

CELLS = (
    *(f"tq {attack}" for attack in ATTACKS),
    "rfa ga", "tm lf", "tm ipm", "cm alie", "huber mimic", "tqlast ga", "tqlast ipm",
)  # fmt: skip
BATCHES = (32, 64, 128, 256, 1000)


def run(cell: str, task_text: str, seed: int, data: str, device: str) -> dict[str, Any]:
    for path in tq_table3.EXPERIMENT.plugins:  # TQ from the last aggregate
        load_plugin(path)
    task = tasks.parse(task_text)
    federation, dataset = begin(task, *cell.split(), f=4, rho=0.4, seed=seed, data=data, device=device)
    loop = Loop(federation, (dataset.test_x, dataset.test_y))
    result = loop.run()
    assert loop.test is not None
    model, (x, y) = result.model, loop.test
    found: dict[str, Any] = {"cell": cell, "task": task_text, "seed": seed, "mean": result.accuracy}
    if task.transform is not None:
        cropped = task.transform(x, torch.Generator(x.device).manual_seed(0))
        found["cropped"] = measure(model, cropped, y, 1000)
    for layer in model.modules():
        if isinstance(layer, ClientBatchNorm):
            layer.train()  # by each batch's own statistics
    for size in BATCHES:
        found[f"batches of {size}"] = measure(model, x, y, size)
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
    parser.add_argument("--cells", default=",".join(CELLS), help="rfa ga,tm lf: these alone")
    parser.add_argument("--tasks", nargs="+", default=["cifar10"], help="also cifar10(border='black') and the like")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    jobs = [(*job, seed) for seed in range(args.seeds) for job in product(args.cells.split(","), args.tasks)]
    gather(run, jobs, ("cell", "task", "seed"), args)


if __name__ == "__main__":
    main()
