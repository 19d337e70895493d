"""Logistic regression."""

from __future__ import annotations

import math

from torch import nn


class Logistic(nn.Sequential):
    """One dense layer from pixels to logits: with cross-entropy a convex problem.

    Args:
        classes: number of labels.
        shape: (C, H, W) of an image, or any shape of one sample.

    Example:
        >>> import torch
        >>> Logistic()(torch.zeros(2, 1, 8, 8)).shape
        torch.Size([2, 10])
    """

    def __init__(self, classes: int = 10, shape: tuple[int, ...] = (1, 8, 8)) -> None:
        super().__init__(nn.Flatten(), nn.Linear(math.prod(shape), classes))
