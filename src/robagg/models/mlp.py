"""A small dense network, for digits."""

from __future__ import annotations

import math

from torch import nn


class MLP(nn.Sequential):
    """One hidden layer with ReLU; logits out.

    Args:
        classes: number of labels.
        shape: (C, H, W) of an image, or any shape of one sample.
        hidden: width of the hidden layer.

    Example:
        >>> import torch
        >>> MLP()(torch.zeros(2, 1, 8, 8)).shape
        torch.Size([2, 10])
    """

    def __init__(self, classes: int = 10, shape: tuple[int, ...] = (1, 8, 8), hidden: int = 64) -> None:
        super().__init__(nn.Flatten(), nn.Linear(math.prod(shape), hidden), nn.ReLU(), nn.Linear(hidden, classes))
