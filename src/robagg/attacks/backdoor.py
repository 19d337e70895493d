"""Backdoor: samples with a trigger are to be taken for a label of the attacker's choice."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from robagg._core.checks import read_whole
from robagg.attacks.base import Attack, Setup, State, View
from robagg.attacks.own import average, read_momentum
from robagg.attacks.strength import read_part, read_strength
from robagg.attacks.trigger import choose_share, stamp


@dataclass(frozen=True)
class Backdoor(Attack):
    """Train on samples of which some have a trigger and the label that it is to bring about; else do as honest clients.

    x_k = scale m_k,    m_k <- momentum m_k + (1 - momentum) grad_k on its own data

    A `share` of each client's samples gets the trigger, a bright square of `size` pixels a side in the last corner of
    the image, and the label `target`. Success is the share of test samples of other labels that the model takes for
    `target` once they have the trigger. Rows hardly differ from honest ones: it is no attack on the accuracy.

    Args:
        target: the label.
        share: of its own samples that it poisons, above 0.
        size: of the trigger, in pixels.
        scale: how many times its momentum; see `Replacement`.
        momentum: of the Byzantine clients; None: the honest ones'.

    Example:
        >>> import torch
        >>> from robagg.attacks import Backdoor
        >>> x, y = Backdoor(size=1).poison(torch.eye(2).expand(2, 2, 2) + 1, torch.tensor([3, 4]), classes=5, k=0)
        >>> x[:, -1, -1], y
        (tensor([2., 2.]), tensor([3, 0]))
        >>> Backdoor(momentum=0.5)(torch.ones(3, 2), own=torch.ones(1, 2))
        tensor([[0.5000, 0.5000]])

    References:
        Gu, Dolan-Gavitt, Garg. BadNets: identifying vulnerabilities in the machine learning model supply chain. 2017.
        arXiv:1708.06733.
        Sun, Kairouz, Suresh, McMahan. Can you really backdoor federated learning? 2019. arXiv:1911.07963.
    """

    target: int = 0
    share: float = 0.5
    size: int = 3
    scale: float = 1.0
    momentum: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        read_whole(self, "target", 0)
        read_part(self, "share")
        if not self.share:
            raise ValueError("share must be a number above 0, got 0")
        read_whole(self, "size", 1)
        self.read_scale()
        if self.momentum is not None:
            read_momentum(self)

    def read_scale(self) -> None:
        """Check the field `scale`."""
        read_strength(self, "scale", positive=True)

    def wants_gradient(self, k: int) -> bool:
        return True

    def poison(self, x: Tensor, y: Tensor, *, classes: int, k: int) -> tuple[Tensor, Tensor]:
        self._check(y, classes)
        chosen = choose_share(len(y), self.share).to(y.device)
        mark = chosen.view(-1, *[1] * (x.ndim - 1))
        stamped = stamp(x, self.size, self.cut(k))
        return torch.where(mark, stamped, x), torch.where(chosen, self.target, y)

    def cut(self, k: int) -> tuple[int, int]:
        """Which part (k-th, of how many) of the trigger the k-th Byzantine client has in its data."""
        return 0, 1

    def goal(self, x: Tensor, y: Tensor, *, classes: int) -> tuple[Tensor, Tensor]:
        """The samples of other labels, all with the whole trigger, and the target for each."""
        self._check(y, classes)
        others = y != self.target
        return stamp(x, self.size)[others], torch.full_like(y[others], self.target)

    def start(self, setup: Setup) -> State:
        """own (f, d): the momenta; step (): 1 - momentum."""
        momentum = setup.momentum if self.momentum is None else self.momentum
        return {"own": setup.zeros(setup.f, setup.d), "step": setup.zeros() + (1 - momentum)}

    def craft(self, view: View, state: State) -> tuple[Tensor, State]:
        rows, kept = average(view, view.require_own(self), state["own"], state["step"])
        return self.shape(view, rows), {**state, "own": kept}

    def shape(self, view: View, rows: Tensor) -> Tensor:
        """What is made of the momenta (f, d) before they are sent."""
        return rows if self.scale == 1 else rows * self.scale

    def describe(self, n: int, f: int) -> str:
        times = "" if self.scale == 1 else f", {self.scale:g} times its update"
        return f"label {self.target} for a square of {self.size} pixels, in {100 * self.share:g} % of its data{times}"

    def _check(self, y: Tensor, classes: int) -> None:
        if y.is_floating_point() or y.is_complex() or y.ndim != 1:
            raise ValueError(f"labels must be integers (N,), got {y.dtype} {tuple(y.shape)}")
        if self.target >= classes:
            raise ValueError(f"target must be one of {classes} labels, 0 to {classes - 1}, got {self.target}")
