"""What BatchNorm's policy does to TQ on CIFAR-10: `python benchmarks/running_statistics.py --data DIR --json FILE`.

Table 5's cells of TQ at f=4. Training normalises by each client's own batch, so that the running statistics matter in
evaluation alone: each run is trained once and evaluated with statistics that were moved in every way there is (of the
honest clients). One JSON line a run, as they come; a run that is there already is not done again.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from typing import Any

from torch import Tensor

from jobs import ATTACKS, begin, gather
from robagg.models import batchnorm
from robagg.tasks.cifar10 import CIFAR10
from robagg.training import Loop


def run(attack: str, augment: bool, seed: int, data: str, device: str) -> dict[str, Any]:
    task = CIFAR10(augment=augment)
    federation, dataset = begin(task, "tq", attack, f=4, rho=0.4, seed=seed, data=data, device=device)
    moved = {how: federation.running.clone() for how in batchnorm.UPDATES}
    compute = federation._compute

    def watch(asked: list[int]) -> tuple[Tensor, Tensor]:
        losses, statistics = compute(asked)
        for how, running in moved.items():
            running.copy_(batchnorm.update(running, statistics[: federation.h], how))
        return losses, statistics

    federation._compute = watch
    loop = Loop(federation, (dataset.test_x, dataset.test_y))
    loop.run()
    found: dict[str, Any] = {"rule": "tq", "attack": attack, "augment": augment, "seed": seed}
    for how, running in moved.items():
        federation.running = running
        found[how] = federation.accuracy(loop.test)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of the data sets")
    parser.add_argument("--json", required=True, type=Path, help="where the lines go")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    gather(run, [*product(ATTACKS, (True, False), range(args.seeds))], ("attack", "augment", "seed"), args)


if __name__ == "__main__":
    main()
