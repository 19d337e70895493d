"""What a model makes of labelled samples: which labels it gets right, and the loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from robagg.models import batchnorm
from robagg.training.gradients.layout import channels_last
from robagg.training.losses import Loss, pair

TEST_BATCH = 128
"""The most samples that are evaluated together where BatchNorm normalises by their own statistics."""


@dataclass(frozen=True, eq=False)
class Score:
    """What a model makes of labelled samples."""

    right: Tensor | None
    """Of each label (N, ...), whether the model gives it; None where labels are measured values."""
    loss: float
    """The mean over the samples; NaN where no loss was asked for."""

    @property
    def accuracy(self) -> float | None:
        """Percent of the labels that the model gives."""
        return None if self.right is None else 100 * int(self.right.sum()) / self.right.numel()


@torch.no_grad()
def score(
    model: nn.Module,
    test: tuple[Tensor, Tensor],
    loss: Loss | None = None,
    *,
    by_batch: bool = False,
    of_logits: bool = False,
) -> Score:
    """Which labels (N, ...) have the largest of the model's scores (N, classes, ...), and the loss.

    With one logit for each label it is the logit's sign that answers; of measured values none is right or wrong.

    Args:
        model: comes back in training mode.
        test: (x, y) on the model's device.
        loss: a function of (output, y) that gives the mean of a batch; None: it is not asked for.
        by_batch: whether BatchNorm normalises by the statistics of each test batch instead of the running ones.
        of_logits: whether the model gives one logit for each label 0 or 1.

    Example:
        >>> found = score(nn.Identity(), (torch.tensor([[0.9, 0.1], [0.8, 0.2]]), torch.tensor([0, 1])))
        >>> found.accuracy, found.right
        (50.0, tensor([ True, False]))
    """
    model.eval()
    norms = [layer for layer in model.modules() if isinstance(layer, batchnorm.ClientBatchNorm)]
    for layer in norms:
        layer.train(by_batch)
    device = test[1].device
    # Where batches matter they are the same on every device.
    size = TEST_BATCH if any(layer.by_batch for layer in norms) else 500 if device.type == "cpu" else 10000
    right, total = list[Tensor](), torch.zeros((), device=device, dtype=torch.float64)
    with channels_last(model):
        for x, y in zip(*(part.tensor_split(-(-len(part) // size)) for part in test), strict=True):
            output = model(x)
            right += [] if y.is_floating_point() and not of_logits else [_find_right(output, y, of_logits)]
            if loss is not None:
                total += loss(output, y) * len(y)
    model.train()
    return Score(torch.cat(right) if right else None, math.nan if loss is None else float(total) / len(test[1]))


def _find_right(output: Any, y: Tensor, of_logits: bool) -> Tensor:
    """Of each label (N, ...), whether it has the largest of its scores (N, classes, ...), or its logit has its sign."""
    if of_logits:
        logits, wanted = pair(output, y)
        return (logits > 0) == (wanted > 0.5)
    shape = tuple(output.shape) if isinstance(output, Tensor) else None
    if shape is None or len(shape) < 2 or shape[1] < 2 or shape[:1] + shape[2:] != tuple(y.shape):
        got = f"outputs {shape}" if shape is not None else f"{type(output).__name__} as output"
        raise ValueError(
            "the model must give scores (N, classes, ...) of two classes or more for labels (N, ...), got "
            f"labels {tuple(y.shape)} and {got}; one logit goes with loss='bce', measured values are floating labels"
        )
    return output.argmax(1) == y  # type: ignore[no-any-return]
