"""Small federations one after the other on one core, against several whose gradients are one batch.

24 runs of digits (n=20, f=6), each with a seed and an attack of its own; everything but the gradients is done as in a
run that goes alone, with the same draws. It shows why the lab does not put runs together: see docs/performance.md.

    python benchmarks/many.py [--json PATH]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from robagg.lab import Run
from robagg.tasks.base import federate
from robagg.training import Federation
from timing import describe_machine, take_turns

RUNS, ROUNDS = 24, 20
RULES = ("tq", "spectralfilter")
ATTACKS = ("alie(z=1.0)", "ipm(jitter=0.5)", "minmax", "heap(along='mean')", "decoy(along='sign')", "mimic")


class Member(Federation):
    """Takes its gradients from where they were computed with those of other runs."""

    rows: Tensor
    losses: Tensor

    def _compute(self, asked: list[int]) -> tuple[Tensor, Tensor]:
        self.momenta.busy = self.active
        self.momenta.take_all(self.rows)
        return self.losses, self.losses.new_empty(len(self.losses), 0)


def start(rule: str, kind: type[Federation] = Federation) -> list[Federation]:
    runs = [Run(rule=rule, attack=ATTACKS[k % len(ATTACKS)], f=6, seed=k) for k in range(RUNS)]
    federations = [federate(*run.parts, n=run.n, f=run.f, seed=run.seed, device="cpu")[0] for run in runs]
    for federation in federations:
        federation.__class__ = kind
    return federations


class Together:
    """Federations whose clients' gradients on digits' network are batched products, written out by hand."""

    def __init__(self, federations: Sequence[Any]) -> None:
        self.federations = federations
        self.weights = torch.stack([federation.w for federation in federations])
        self.flat = federations[0].flat
        for federation, w in zip(federations, self.weights, strict=True):
            federation.w = w
        self.rows = torch.empty(len(federations), federations[0].h, self.flat.d)

    def round(self, t: int) -> None:
        rounds, h, b = len(self.federations), self.federations[0].h, self.federations[0].settings.batch
        drawn = [federation.shards.draw(b, federation.random["batches"]) for federation in self.federations]
        pairs = list(zip(self.federations, drawn, strict=True))
        x = torch.stack([federation.shards.x[at] for federation, at in pairs]).view(rounds, h * b, -1)
        y = torch.stack([federation.shards.y[at] for federation, at in pairs]).view(rounds, h * b, 1)
        first, bias, second, last = self.flat.views(self.weights).values()
        hidden = torch.baddbmm(bias[:, None], x, first.mT).relu_()
        output = torch.baddbmm(last[:, None], hidden, second.mT)
        output = output - output.amax(2, keepdim=True)
        parts = output.exp()
        total = parts.sum(2, keepdim=True)
        losses = (total.log() - output.gather(2, y)).view(rounds, h, b).mean(2)
        error = (parts / total).scatter_add_(2, y, torch.full(y.shape, -1.0)).mul_(1 / b)
        back = torch.bmm(error, second).mul_(hidden > 0)
        into = list(self.flat.views(self.rows).values())
        for way, seen, weight, offset in ((back, x, *into[:2]), (error, hidden, *into[2:])):
            own = way.reshape(rounds * h, b, -1)
            weight.copy_(torch.bmm(own.mT, seen.reshape(rounds * h, b, -1)).view(weight.shape))
            offset.copy_(own.sum(1).view(offset.shape))
        for federation, federation.rows, federation.losses in zip(self.federations, self.rows, losses, strict=True):
            federation.round(t, verdict=t % 3 == 0)


def go_alone(federations: Sequence[Federation], clock: Callable[[], int]) -> None:
    begin = clock()
    for federation in federations:
        for t in range(ROUNDS):
            federation.round(begin + t, verdict=t % 3 == 0)


def go_together(groups: Sequence[Together], clock: Callable[[], int]) -> None:
    begin = clock()
    for group in groups:
        for t in range(ROUNDS):
            group.round(begin + t)


def measure(rule: str, sizes: Sequence[int], seconds: float) -> dict[str, Any]:
    """Milliseconds of one round of one run by how many went together, and how far the weights came apart at first."""
    alone = start(rule)
    subjects: dict[str, Callable[[], None]] = {"1": partial(go_alone, alone, count(0, ROUNDS).__next__)}
    groups = {size: [Together(part) for part in divide(start(rule, Member), size)] for size in sizes}
    for size, parts in groups.items():
        subjects[str(size)] = partial(go_together, parts, count(0, ROUNDS).__next__)
    for run in subjects.values():
        run()
    apart = max(
        float((one.w - other.w).abs().max())
        for parts in groups.values()
        for one, other in zip(alone, [f for part in parts for f in part.federations], strict=True)
    )
    times = take_turns(subjects, seconds=seconds, least=3)
    return {"apart": apart, "ms": {size: 1000 * taken / RUNS / ROUNDS for size, taken in times.items()}}


def divide(federations: list[Federation], size: int) -> list[list[Federation]]:
    return [federations[k : k + size] for k in range(0, len(federations), size)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each rule")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    record: dict[str, Any] = {"machine": describe_machine(), "runs": RUNS, "rules": {}}
    for rule in RULES:
        found = record["rules"][rule] = measure(rule, (4, 8, 24), options.seconds)
        cells = ", ".join(f"{size}: {ms:.2f} ms ({found['ms']['1'] / ms:.2f})" for size, ms in found["ms"].items())
        print(f"{rule}: a round of one run by how many go together (times as many): {cells}", flush=True)
        print(f"{rule}: after {ROUNDS} rounds weights are {found['apart']:.1e} apart at most")
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
