"""torch's optimisers, at the clients and at the server: one step or several by gradients that they are given."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from robagg._core.contract import describe
from robagg._core.registry import fold, split_call, unknown
from robagg.models.flat import Flat

Make: TypeAlias = str | Callable[[list[nn.Parameter]], torch.optim.Optimizer]
"""An optimiser by its name in torch.optim, `adamw(weight_decay=0.01)`, or a function of the model's parameters."""
CLASSES = {
    name.lower(): cls
    for name, cls in vars(torch.optim).items()
    if isinstance(cls, type) and issubclass(cls, torch.optim.Optimizer) and cls is not torch.optim.Optimizer
    if name not in ("LBFGS", "SparseAdam")  # they ask for the loss again, and for sparse gradients
}


class Optimiser:
    """One of torch's optimisers on a model that is bound to w (d,), which others may move in between.

    Its own rate, `rate` where the text gives no lr, moves as the rate of the run does.

    Example:
        >>> flat = Flat(nn.Linear(2, 1, bias=False))
        >>> w = flat.flatten().fill_(1.0)
        >>> flat.bind(w)
        >>> Optimiser("sgd(momentum=0.9)", flat, w, rate=0.5).walk([[torch.tensor([[1.0, 3.0]])]]), w
        (tensor([1., 3.]), tensor([1., 1.]))
    """

    def __init__(self, make: Make, flat: Flat, w: Tensor, rate: float) -> None:
        self.flat, self.w, self.rate, self.factor, self._first = flat, w, rate, 1.0, rate
        parameters = list(flat.parameters)
        if isinstance(make, str):
            cls, given = _read(make)
            self.inner = cls(parameters, **{"lr": rate} | given)
        else:
            self.inner = make(parameters)
            if not isinstance(self.inner, torch.optim.Optimizer):
                raise TypeError(f"an optimiser must be a torch.optim.Optimizer, got {describe(self.inner)} of {make}")
        self._own = [group["lr"] for group in self.inner.param_groups]

    def set_rate(self, rate: float) -> None:
        """The run's rate from now on."""
        self.rate, self.factor = rate, rate / self._first

    def step(self, gradient: Iterable[Tensor]) -> None:
        """Move w by a gradient, parameter by parameter."""
        for p, part in zip(self.flat.parameters, gradient, strict=True):
            p.grad = part
        for group, own in zip(self.inner.param_groups, self._own, strict=True):
            group["lr"] = own * self.factor
        self.inner.step()
        for p in self.flat.parameters:
            p.grad = None

    def walk(self, gradients: Iterable[Iterable[Tensor]]) -> Tensor:
        """(d,) The way that steps by these gradients go, divided by the run's rate; w is where it was afterwards.

        Each gradient is asked for where the steps before it have led.
        """
        start = self.w.clone()
        for gradient in gradients:
            self.step(gradient)
        way = (start - self.w).div_(self.rate) if self.rate else torch.zeros_like(start)
        self.w.copy_(start)
        return way

    def keep(self) -> dict[str, Any]:
        """What the next steps depend on."""
        return copy.deepcopy(self.inner.state_dict())

    def take_up(self, kept: dict[str, Any]) -> None:
        self.inner.load_state_dict(copy.deepcopy(kept))


def spell(text: str) -> str:
    """The one spelling of an optimiser's text; refused is what torch does not make.

    >>> spell("AdamW(weight_decay=0.1, betas=(0.9, 0.99))")
    'adamw(betas=(0.9, 0.99), weight_decay=0.1)'
    """
    cls, given = _read(text)
    try:
        cls([nn.Parameter(torch.zeros(1, 1))], **{"lr": 0.1} | given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"an optimiser must be one that torch.optim makes, got {text!r}: {error}") from error
    shown = ", ".join(f"{name}={value!r}" for name, value in sorted(given.items()))
    return f"{cls.__name__.lower()}({shown})" if shown else cls.__name__.lower()


def _read(text: str) -> tuple[type[torch.optim.Optimizer], dict[str, Any]]:
    name, given = split_call(text, "optimiser")
    if fold(name) not in CLASSES:
        raise ValueError(unknown("optimiser", name, CLASSES, CLASSES))
    return CLASSES[fold(name)], given
