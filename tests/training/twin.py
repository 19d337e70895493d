"""The paper's Algorithm 2 in plain loops: what the trainer is compared with."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from robagg._core.rule import Rule
from robagg.attacks.base import Attack, Setup, View
from robagg.training import seeds


def train_plainly(
    model: nn.Module,
    clients: list[tuple[Tensor, Tensor]],
    rule: Rule,
    attack: Attack,
    *,
    f: int,
    classes: int,
    rounds: int,
    batch: int,
    momentum: float,
    rate: float,
    local_steps: int = 1,
    seed: int = 0,
) -> tuple[Tensor, list[float]]:
    """The final weights (d,) and the honest training loss of each round; for models without dropout or BatchNorm."""
    model = copy.deepcopy(model)
    n, h = len(clients), len(clients) - f
    batches = seeds.generator(seed, "batches")
    random = seeds.generator(seed, "attack")
    mixing = seeds.generator(seed, "rule")
    d = sum(p.numel() for p in model.parameters())
    state = attack.start(Setup(n, f, d, generator=random))
    data = list(clients)
    for k in range(f):
        data[h + k] = attack.poison(*clients[h + k], classes=classes, k=k)
    working = [i for i in range(n) if i < h or attack.wants_gradient(i - h)]
    momenta = [torch.zeros(d) for _ in range(h)]
    last = torch.zeros(d)
    history = []
    for t in range(rounds):
        # Step 1: every client that needs one computes its gradient (or what E local steps come to).
        draws = torch.rand(len(working), batch * local_steps, generator=batches, dtype=torch.float64)
        own = torch.zeros(f, d)
        losses = []
        for row, i in enumerate(working):
            x, y = data[i]
            picked = [int(u * len(y)) for u in draws[row].tolist()]
            gradient, loss = descend(model, x[picked], y[picked], local_steps, rate)
            if i < h:
                # Step 2: honest clients send their momentum.
                momenta[i] = momentum * momenta[i] + (1 - momentum) * gradient
                losses.append(loss)
            else:
                own[i - h] = gradient
        sent = list(momenta)
        # Step 3: the Byzantine clients see it and send what they like.
        if f:
            view = View(torch.stack(momenta), own, n=n, f=f, generator=random, round=t)
            rows, state = attack.craft(view, state)
            sent += list(rows)
        # Step 4: the server aggregates and steps.
        verdict, last = rule.step(torch.stack(sent), last, generator=mixing)
        shift(model, -rate * verdict.value)
        history.append(sum(losses) / h)
    return torch.cat([p.detach().flatten() for p in model.parameters()]), history


def descend(model: nn.Module, x: Tensor, y: Tensor, steps: int, rate: float) -> tuple[Tensor, float]:
    """The gradient, or the way gone in several steps divided by the rate; and the loss before the first."""
    local = copy.deepcopy(model)
    first = 0.0
    way = torch.zeros(sum(p.numel() for p in model.parameters()))
    for k in range(steps):
        b = len(y) // steps
        local.zero_grad()
        loss = nn.functional.cross_entropy(local(x[k * b : (k + 1) * b]), y[k * b : (k + 1) * b])
        loss.backward()
        first = float(loss.detach()) if k == 0 else first
        gradient = torch.cat([p.grad.flatten() for p in local.parameters() if p.grad is not None])
        way += gradient
        shift(local, -rate * gradient)
    return way, first


def shift(model: nn.Module, by: Tensor) -> None:
    """Add a vector to the weights."""
    at = 0
    with torch.no_grad():
        for p in model.parameters():
            p += by[at : at + p.numel()].view_as(p)
            at += p.numel()
