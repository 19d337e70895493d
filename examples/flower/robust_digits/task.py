"""The task: a small network on digits (or MNIST), of which every node holds a part."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional

from robagg.data import Dataset, load


def build_model(dataset: str) -> nn.Module:
    """A network with one hidden layer, with the same first weights in every process."""
    width = 64 if dataset == "digits" else 784
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 10))


@cache
def read_data(dataset: str) -> Dataset:
    """The whole data set; it is read once in a process."""
    return load(dataset)


def take_part(dataset: str, partition: int, partitions: int) -> tuple[Tensor, Tensor]:
    """One node's training data: every partitions-th image."""
    data = read_data(dataset)
    return data.train_x[partition::partitions], data.train_y[partition::partitions]


def train(model: nn.Module, x: Tensor, y: Tensor, *, epochs: int, learning_rate: float, seed: int) -> float:
    """Plain SGD on batches of 16; returns the mean loss of the last epoch."""
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.SGD(model.parameters(), lr=learning_rate)
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
def evaluate(model: nn.Module, x: Tensor, y: Tensor) -> tuple[float, float]:
    """Loss and accuracy."""
    scores = model(x)
    return float(functional.cross_entropy(scores, y)), float((scores.argmax(dim=1) == y).float().mean())
