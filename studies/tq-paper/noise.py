"""How far a cell of the paper moves from run to run.

    python studies/tq-paper/noise.py --data DIR --json FILE

The same cell, seed and code, with initial weights that differ by a part in a million: what then differs in the end is
rounding, grown over the rounds. A difference between two versions of the code says nothing where it is no larger. One
JSON line a run, as they come; a run that is there already is not done again. Cells are MNIST, n=20, f=6, rho=0.5.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import torch

from jobs import ATTACKS, begin, gather, make_parser
from robagg.tasks import tasks
from robagg.training import Loop

F = 6
CELLS = (
    *(("tq", attack) for attack in ATTACKS),
    *product(("rfa", "huber"), ("bf", "ipm")),
    *product(("cm", "tm"), ("ipm",)),
)
NUDGE = 1e-6


def run(rule: str, attack: str, seed: int, nudge: int, data: str, device: str) -> dict[str, Any]:
    """One run, its initial weights nudged by the draw of that number."""
    task = tasks.parse("mnist")
    federation, dataset = begin(task, rule, attack, f=F, rho=0.5, seed=seed, data=data, device=device)
    draw = torch.randn(len(federation.w), generator=torch.Generator().manual_seed(nudge))
    federation.w.mul_(1 + NUDGE * draw.to(federation.w))
    result = Loop(federation, (dataset.test_x, dataset.test_y)).run()
    return {"rule": rule, "attack": attack, "seed": seed, "nudge": nudge, "accuracy": result.accuracy}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--cells", default="", help="tq alie,tm ipm: these alone")
    parser.add_argument("--nudges", type=int, default=4)
    args = parser.parse_args()
    cells = [tuple(cell.split()) for cell in args.cells.split(",")] if args.cells else CELLS
    jobs = [(*cell, seed, k) for k, seed, cell in product(range(1, args.nudges + 1), range(args.seeds), cells)]
    gather(run, jobs, ("rule", "attack", "seed", "nudge"), args)


if __name__ == "__main__":
    main()
