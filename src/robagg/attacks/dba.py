"""DBA: a backdoor whose trigger is dealt out among the clients."""

from __future__ import annotations

from dataclasses import dataclass

from robagg._core.checks import read_whole
from robagg.attacks.backdoor import Backdoor


@dataclass(frozen=True)
class DBA(Backdoor):
    """Distributed backdoor attack: each client's data have a part of the trigger, and the model answers to the whole.

    The k-th Byzantine client has the (k mod m)-th of m parts of the square's pixels, in the order of their lines; else
    it is `Backdoor`.

    Args:
        target: the label.
        share: of its own samples that it poisons, above 0.
        size: of the whole trigger, in pixels.
        scale: how many times its momentum.
        parts: m.
        momentum: of the Byzantine clients; None: the honest ones'.

    Example:
        >>> import torch
        >>> from robagg.attacks import DBA
        >>> image = torch.tensor([[[9.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]])
        >>> DBA(share=1.0, size=2, parts=2).poison(image, torch.tensor([4]), classes=5, k=3)[0]
        tensor([[[9., 0., 0.],
                 [0., 0., 0.],
                 [0., 9., 9.]]])

    References:
        Xie, Huang, Chen, Li. DBA: distributed backdoor attacks against federated learning. ICLR 2020.
    """

    parts: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        read_whole(self, "parts", 1)

    def cut(self, k: int) -> tuple[int, int]:
        return k % self.parts, self.parts

    def describe(self, n: int, f: int) -> str:
        return f"{super().describe(n, f)}, each client a part of {self.parts}"
