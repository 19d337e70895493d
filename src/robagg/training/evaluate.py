"""How many labels of a test set a model gets right."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from robagg.models import batchnorm
from robagg.training.gradients.layout import channels_last

TEST_BATCH = 128
"""The most samples that are evaluated together where BatchNorm normalises by their own statistics."""


@torch.no_grad()
def measure_accuracy(model: nn.Module, test: tuple[Tensor, Tensor], *, by_batch: bool = False) -> float:
    """Percent of the labels (N, ...) that have the largest of the model's scores (N, classes, ...).

    Args:
        model: comes back in training mode.
        test: (x, y) on the model's device.
        by_batch: whether BatchNorm normalises by the statistics of each test batch instead of the running ones.

    Example:
        >>> measure_accuracy(nn.Identity(), (torch.tensor([[0.9, 0.1], [0.8, 0.2]]), torch.tensor([0, 1])))
        50.0
    """
    model.eval()
    norms = [layer for layer in model.modules() if isinstance(layer, batchnorm.ClientBatchNorm)]
    for layer in norms:
        layer.train(by_batch)
    device = test[1].device
    # Where batches matter they are the same on every device.
    size = TEST_BATCH if any(layer.by_batch for layer in norms) else 500 if device.type == "cpu" else 10000
    right = torch.zeros((), device=device, dtype=torch.int64)
    with channels_last(model):
        for x, y in zip(*(part.tensor_split(-(-len(part) // size)) for part in test), strict=True):
            right += (_choose_labels(model(x), y) == y).sum()
    model.train()
    return 100 * int(right) / test[1].numel()


def _choose_labels(output: Any, y: Tensor) -> Tensor:
    shape = tuple(output.shape) if isinstance(output, Tensor) else None
    if shape is None or len(shape) < 2 or shape[1] < 2 or shape[:1] + shape[2:] != tuple(y.shape):
        got = f"outputs {shape}" if shape is not None else f"{type(output).__name__} as output"
        raise ValueError(
            "the model must give scores (N, classes, ...) of two classes or more for labels (N, ...), got "
            f"labels {tuple(y.shape)} and {got}"
        )
    labels: Tensor = output.argmax(1)
    return labels
