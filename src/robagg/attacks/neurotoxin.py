"""Neurotoxin: a backdoor in the coordinates that honest clients move least."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from robagg.attacks.backdoor import Backdoor
from robagg.attacks.base import View
from robagg.attacks.own import find_largest
from robagg.attacks.strength import read_part


@dataclass(frozen=True)
class Neurotoxin(Backdoor):
    """`Backdoor`, with 0 in the coordinates that honest clients move most, so that later rounds do not undo it.

    x_kj = 0 where |mean_j| is among the largest `top` of all, else scale m_kj

    The paper has the last aggregate, which clients can tell from the model, in the place of the honest mean.

    Args:
        target: the label.
        share: of its own samples that it poisons, above 0.
        size: of the trigger, in pixels.
        scale: how many times its momentum.
        top: the part of the coordinates that it leaves alone.
        momentum: of the Byzantine clients; None: the honest ones'.

    Example:
        >>> import torch
        >>> from robagg.attacks import Neurotoxin
        >>> honest = torch.tensor([[0.1, 9.0, 0.2]])
        >>> Neurotoxin(top=0.3, momentum=0)(honest, own=torch.ones(1, 3))
        tensor([[1., 0., 1.]])

    References:
        Zhang, Panda, Song, Yang, Mahoney, Gonzalez, Ramchandran, Mittal. Neurotoxin: durable backdoors in federated
        learning. ICML 2022. arXiv:2206.10341.
    """

    top: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        read_part(self, "top")

    def shape(self, view: View, rows: Tensor) -> Tensor:
        return super().shape(view, rows).masked_fill(find_largest(view.mean, self.top), 0)

    def describe(self, n: int, f: int) -> str:
        return f"{super().describe(n, f)}, but for the {100 * self.top:g} % of the coordinates that move most"
