"""What clients send that compute gradients of their own: these, or their averages over rounds."""

from __future__ import annotations

from torch import Tensor

from robagg._core.checks import read_number
from robagg.attacks.base import Attack, View


def read_momentum(attack: Attack) -> None:
    """Check the field `momentum`, a number from 0 to below 1, and keep it as a float."""
    momentum = read_number("momentum", attack.momentum)  # type: ignore[attr-defined]
    if not 0 <= momentum < 1:
        raise ValueError(f"momentum must be a number from 0 to below 1, got {momentum:g}")
    object.__setattr__(attack, "momentum", momentum)


def average(view: View, rows: Tensor, kept: Tensor, step: Tensor | float) -> tuple[Tensor, Tensor]:
    """The averages (f, d) of those who send, moved by their new rows, and all that are kept."""
    kept = kept.clone()
    for k, row in zip(view.who, rows, strict=True):
        kept[k].lerp_(row, step)
    return view.pick(kept), kept


def find_largest(x: Tensor, share: float) -> Tensor:
    """(d,) which coordinates hold the largest `share` of the absolute values of x, one at least where share > 0.

    >>> import torch
    >>> find_largest(torch.tensor([1.0, -5.0, 2.0, 0.0]), 0.5)
    tensor([False,  True,  True, False])
    """
    count = min(max(round(share * len(x)), 1), len(x)) if share > 0 else 0
    return x.new_zeros(len(x)).bool().index_fill(0, x.abs().topk(count).indices, True)
