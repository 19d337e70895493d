"""What BatchNorm's policy does to TQ on CIFAR-10.

    python studies/tq-paper/running_statistics.py --data DIR --json FILE

Table 5's cells of TQ at f=4. Training normalises by each client's own batch, so that the running statistics matter in
evaluation alone: each run is trained once and evaluated with statistics that were moved in three ways (of the honest
clients): towards their mean, towards their median, and by one client after the other, as a loop over clients that share
one model leaves them. One JSON line a run, as they come; a run that is there already is not done again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from itertools import product
from typing import Any

from torch import Tensor

from jobs import ATTACKS, begin, gather, make_parser
from robagg.models import batchnorm
from robagg.tasks import CIFAR10
from robagg.training import Loop

MOVES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mean": batchnorm.update,
    "median": partial(batchnorm.update, how="median"),
    "sequential": lambda running, rows: reduce(lambda moved, row: moved.lerp(row, 0.1), rows, running),
}
"""How the rows (h, s) of the honest clients move the running statistics (s,)."""


def run(attack: str, augment: bool, seed: int, data: str, device: str) -> dict[str, Any]:
    task = CIFAR10(augment=augment)
    federation, dataset = begin(task, "tq", attack, f=4, rho=0.4, seed=seed, data=data, device=device)
    moved = {how: federation.running.clone() for how in MOVES}
    compute = federation._compute

    def watch(asked: list[int]) -> tuple[Tensor, Tensor]:
        losses, statistics = compute(asked)
        for how, running in moved.items():
            running.copy_(MOVES[how](running, statistics[: federation.h]))
        return losses, statistics

    federation._compute = watch
    loop = Loop(federation, (dataset.test_x, dataset.test_y))
    loop.run()
    found: dict[str, Any] = {"rule": "tq", "attack": attack, "augment": augment, "seed": seed}
    for how, running in moved.items():
        federation.running = running
        found[how] = federation.score(loop.test).accuracy
    return found


def main() -> None:
    args = make_parser(__doc__).parse_args()
    gather(run, [*product(ATTACKS, (True, False), range(args.seeds))], ("attack", "augment", "seed"), args)


if __name__ == "__main__":
    main()
