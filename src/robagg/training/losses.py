"""The losses that have names: of classes, of one logit, and of measured values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from torch import Tensor, nn
from torch.nn import functional

Loss: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""A function of (output, y) that gives the mean over a batch."""


def pair(output: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs (N, ...) or (N, ..., 1) and labels (N, ...) in one shape and dtype; torch would broadcast others.

    >>> [tuple(part.shape) for part in pair(torch.zeros(3, 1), torch.zeros(3, dtype=torch.int64))]
    [(3,), (3,)]
    """
    if output.ndim == y.ndim + 1 and output.shape[-1] == 1:
        output = output.squeeze(-1)
    if output.shape != y.shape:
        raise ValueError(
            f"the model must give one number for each label, got outputs {tuple(output.shape)} for {tuple(y.shape)}"
        )
    return output, y.to(output.dtype)


def _apply(loss: Loss, output: Tensor, y: Tensor) -> Tensor:
    return loss(*pair(output, y))


LOSSES: dict[str, Loss] = {
    "cross_entropy": functional.cross_entropy,
    "nll": functional.nll_loss,
    "bce": partial(_apply, functional.binary_cross_entropy_with_logits),
    "mse": partial(_apply, functional.mse_loss),
    "l1": partial(_apply, functional.l1_loss),
    "huber": partial(_apply, functional.huber_loss),
}


def is_of_logits(loss: Loss) -> bool:
    """Whether it is of one logit for each label 0 or 1, which the logit's sign then answers.

    >>> is_of_logits(nn.BCEWithLogitsLoss()), is_of_logits(LOSSES["bce"]), is_of_logits(LOSSES["mse"])
    (True, True, False)
    """
    known = (LOSSES["bce"], functional.binary_cross_entropy_with_logits)
    return loss in known or isinstance(loss, nn.BCEWithLogitsLoss)
