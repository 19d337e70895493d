"""The task: a small network on digits, of which every site holds a part."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from robagg.data import load


class Network(nn.Sequential):
    """One hidden layer, with the same first weights in every process."""

    def __init__(self) -> None:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            super().__init__(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def take_part(site: int, sites: int) -> tuple[Tensor, Tensor]:
    """One site's training data: every sites-th image."""
    data = load("digits")
    return data.train_x[site::sites], data.train_y[site::sites]


def train(model: nn.Module, x: Tensor, y: Tensor, *, epochs: int, seed: int) -> float:
    """Plain SGD on batches of 16; returns the mean loss of the last epoch."""
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = [0.0]
    for _ in range(epochs):
        losses = []
        for batch in torch.randperm(len(x), generator=generator).split(16):
            loss = functional.cross_entropy(model(x[batch]), y[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(float(loss.detach()))
    return sum(losses) / len(losses)


@torch.no_grad()
def evaluate(model: nn.Module) -> float:
    """Accuracy on the test data, as a share."""
    data = load("digits")
    return float((model(data.test_x).argmax(dim=1) == data.test_y).float().mean())
