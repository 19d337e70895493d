"""What the way of evaluating does to cells of table5 at f=4.

    python studies/tq-paper/evaluation.py --data DIR --json FILE

Each run is trained once, as stated, and evaluated with running statistics of BatchNorm, by the statistics of test
batches of several sizes (the last batch is smaller), and on test images that are cropped and flipped as those in
training. One JSON line a run, as they come; a run that is there already is not done again.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from jobs import ATTACKS, begin, gather, make_parser
from robagg import load_plugin
from robagg.models.batchnorm import ClientBatchNorm
from robagg.tasks import tasks
from robagg.training import Loop

CELLS = (
    *(f"tq {attack}" for attack in ATTACKS),
    "rfa ga", "tm lf", "tm ipm", "cm alie", "huber mimic", "tqlast ga", "tqlast ipm",
)  # fmt: skip
BATCHES = (32, 64, 128, 256, 1000)


def run(cell: str, task_text: str, seed: int, data: str, device: str) -> dict[str, Any]:
    load_plugin(Path(__file__).with_name("tq_varied.py"))  # TQ from the last aggregate
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
    parser = make_parser(__doc__)
    parser.add_argument("--cells", default=",".join(CELLS), help="rfa ga,tm lf: these alone")
    parser.add_argument("--tasks", nargs="+", default=["cifar10"], help="also cifar10(border='black') and the like")
    args = parser.parse_args()
    jobs = [(*job, seed) for seed in range(args.seeds) for job in product(args.cells.split(","), args.tasks)]
    gather(run, jobs, ("cell", "task", "seed"), args)


if __name__ == "__main__":
    main()
