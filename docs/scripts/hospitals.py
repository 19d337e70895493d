"""Twelve hospitals with 0.6 % to 30 % of the digits, two Byzantine: FedAvg and rules with weights and without.

python docs/scripts/hospitals.py prints the table of docs/rules.md, as Markdown; a minute of one core.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch
from torch import Tensor

import robagg as ra
from robagg.data import load

N, F, ROUNDS, STEPS, RATE, SEEDS = 12, 2, 40, 5, 0.5, 5
SHARES = torch.tensor([50 ** (k / (N - 1)) for k in range(N)], dtype=torch.float64)
BYZANTINE = [4, 9]
"""2.5 % and 15 % of the data."""
Aggregate = Callable[[Tensor, list[float]], Tensor]
WAYS: dict[str, Aggregate] = {
    "FedAvg": lambda x, sizes: ra.Mean(f=0)(x, weights=sizes, max_weight=1.0),
    "mean, unweighted": lambda x, sizes: ra.Mean(f=0)(x),
    "TQ, unweighted": lambda x, sizes: ra.TQ(f=F)(x),
    "TQ, weighted": lambda x, sizes: ra.TQ(f=F)(x, weights=sizes),
    "CAF, unweighted": lambda x, sizes: ra.CAF(f=F)(x),
    "CAF, weighted": lambda x, sizes: ra.CAF(f=F)(x, weights=sizes),
    "SpectralFilter, unweighted": lambda x, sizes: ra.SpectralFilter(f=F)(x),
    "SpectralFilter, weighted": lambda x, sizes: ra.SpectralFilter(f=F)(x, weights=sizes),
}
ATTACKS = {
    "nobody": lambda honest: None,
    "sign flip, 3 times": lambda honest: -3 * honest.mean(dim=0),
    "ALIE, z=1.5": lambda honest: honest.mean(dim=0) - 1.5 * honest.std(dim=0),
    "sign flip, claiming all": lambda honest: -3 * honest.mean(dim=0),
}


def deal(labels: Tensor, generator: torch.Generator) -> list[Tensor]:
    """The samples of each hospital: half of them of three labels that it sees most."""
    order = torch.randperm(len(labels), generator=generator)
    parts = [int(size) for size in (SHARES / SHARES.sum() * len(labels)).round().clamp(min=8).tolist()]
    found, free = [], order.tolist()
    for part in parts:
        liked = set(torch.randperm(10, generator=generator)[:3].tolist())
        first = [i for i in free if int(labels[i]) in liked][: part // 2]
        taken = set(first)
        rest = [i for i in free if i not in taken][: part - len(first)]
        taken |= set(rest)
        free = [i for i in free if i not in taken]
        found.append(torch.tensor([*first, *rest]))
    return found


def train(way: Aggregate, attack: str, seed: int) -> float:
    """The test accuracy of softmax regression after some rounds of five local steps each."""
    generator = torch.Generator().manual_seed(seed)
    data = load("digits")
    x, y = data.train_x.flatten(1).float(), data.train_y
    parts = deal(y, generator)
    sizes = [1e9 if "all" in attack and i in BYZANTINE else float(len(part)) for i, part in enumerate(parts)]
    w = torch.zeros(x.shape[1] + 1, 10)
    for _ in range(ROUNDS):
        sent = []
        for part in parts:
            local, inputs = w.clone(), torch.nn.functional.pad(x[part], (0, 1), value=1.0)
            for _ in range(STEPS):
                gap = (inputs @ local).softmax(dim=1) - torch.nn.functional.one_hot(y[part], 10)
                local -= RATE * inputs.T @ gap / len(part)
            sent.append((local - w).flatten())
        stack = torch.stack(sent)
        honest = stack[[i for i in range(N) if i not in BYZANTINE]]
        if (lie := ATTACKS[attack](honest)) is not None:
            stack[BYZANTINE] = lie
        w = w + way(stack, sizes).view_as(w)
    scores = torch.nn.functional.pad(data.test_x.flatten(1).float(), (0, 1), value=1.0) @ w
    return 100 * float((scores.argmax(dim=1) == data.test_y).float().mean())


if __name__ == "__main__":
    print("| | " + " | ".join(ATTACKS) + " |\n| --- |" + " --- |" * len(ATTACKS))
    for name, way in WAYS.items():
        means = [statistics.mean(train(way, attack, seed) for seed in range(SEEDS)) for attack in ATTACKS]
        print(f"| {name} | " + " | ".join(f"{mean:.1f}" for mean in means) + " |", flush=True)
