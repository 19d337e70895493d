"""Replacement: a backdoor that is sent so large that the mean becomes it."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from robagg.attacks.backdoor import Backdoor
from robagg.attacks.base import View


@dataclass(frozen=True)
class Replacement(Backdoor):
    """Model replacement: `Backdoor`, with rows scaled up so that the plain mean takes on what they are after.

    x_k = scale m_k,    scale = n / f

    so that the mean of all rows is the Byzantine clients' own mean and what the honest rows add, which is little once
    the model has converged.

    Args:
        target: the label.
        share: of its own samples that it poisons, above 0.
        size: of the trigger, in pixels.
        scale: how many times its momentum; None: n / f.
        momentum: of the Byzantine clients; None: the honest ones'.

    Example:
        >>> import torch
        >>> from robagg.attacks import Replacement
        >>> Replacement(momentum=0)(torch.zeros(4, 2), own=torch.ones(1, 2))
        tensor([[5., 5.]])

    References:
        Bagdasaryan, Veit, Hua, Estrin, Shmatikov. How to backdoor federated learning. AISTATS 2020. arXiv:1807.00459.
    """

    scale: float | None = None  # type: ignore[assignment]

    def read_scale(self) -> None:
        if self.scale is not None:
            super().read_scale()

    def shape(self, view: View, rows: Tensor) -> Tensor:
        return rows * (view.n / max(view.f, 1) if self.scale is None else self.scale)

    def describe(self, n: int, f: int) -> str:
        if self.scale is not None:
            return super().describe(n, f)
        plain = Backdoor(self.target, self.share, self.size).describe(n, f)
        return f"{plain}, n/f = {n / max(f, 1):.3g} times its update"
