"""Gradients of all clients on one shared model: a loop on a CPU, `vmap` on an accelerator, the same to rounding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import grad_and_value, vmap

from robagg.models import batchnorm
from robagg.models.flat import Flat
from robagg.train.layout import channels_last

Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Work:
    """What a client does in a round: `steps` steps of plain gradient descent at `rate` from the shared weights."""

    loss: Loss
    steps: int = 1
    rate: float = 1.0


class Looped:
    """One client after the other, on the model itself: on a CPU nothing is faster."""

    def __init__(self, model: nn.Module, flat: Flat, w: Tensor, work: Work) -> None:
        self.model, self.flat, self.w, self.work = model, flat, w, work
        flat.bind(w)

    def run(self, x: Tensor, y: Tensor, use: Callable[[int, list[Tensor]], None]) -> tuple[Tensor, Tensor]:
        """Call `use(i, gradient)` for each client's batches x (clients, steps*b, ...), y; the losses (clients,) and
        BatchNorm statistics (clients, s)."""
        losses, statistics = [], []
        with channels_last(self.model):
            for i in range(len(x)):
                gradient, loss = self._one(x[i], y[i])
                losses.append(loss)
                statistics.append(batchnorm.collect(self.model))
                use(i, gradient)
        return torch.stack(losses), torch.stack(statistics)

    def _one(self, x: Tensor, y: Tensor) -> tuple[list[Tensor], Tensor]:
        steps = self.work.steps
        if steps == 1:
            return self._gradient(x, y)
        start, first = self.w.clone(), torch.zeros(())
        for k, (xs, ys) in enumerate(zip(x.chunk(steps), y.chunk(steps), strict=True)):
            gradient, loss = self._gradient(xs, ys)
            first = loss if k == 0 else first
            self.w.sub_(self.flat.join(gradient), alpha=self.work.rate)
        moved = (start - self.w) / self.work.rate
        self.w.copy_(start)
        return list(self.flat.views(moved).values()), first

    def _gradient(self, x: Tensor, y: Tensor) -> tuple[list[Tensor], Tensor]:
        loss = self.work.loss(self.model(x), y)
        parts = torch.autograd.grad(loss, self.flat.parameters, allow_unused=True)
        full = [torch.zeros_like(p) if g is None else g for p, g in zip(self.flat.parameters, parts, strict=True)]
        return full, loss.detach()


class Mapped:
    """All clients at once under `vmap`: no client needs a copy of the model, and a CUDA graph can hold it."""

    def __init__(self, model: nn.Module, flat: Flat, w: Tensor, work: Work) -> None:
        self.model, self.flat, self.w, self.work = model, flat, w, work
        flat.bind(w)
        self._mapped = vmap(self._one, in_dims=(None, 0, 0), randomness="different")

    def run(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients (clients, d), losses (clients,), statistics (clients, s) of x (clients, steps*b, ...) and y."""
        gradients, losses, statistics = self._mapped(self.w, x, y)
        return gradients, losses, statistics

    def _one(self, w: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        steps = self.work.steps
        here, first = w, w.new_zeros(())
        for k, (xs, ys) in enumerate(zip(x.chunk(steps), y.chunk(steps), strict=True)):
            gradient, (loss, statistics) = grad_and_value(self._loss, has_aux=True)(here, xs, ys)
            first = loss if k == 0 else first
            if steps == 1:
                return gradient, loss, statistics
            here = here - self.work.rate * gradient
        return (w - here) / self.work.rate, first, statistics

    def _loss(self, w: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        output = self.flat.forward(w, x)
        return self.work.loss(output, y), batchnorm.collect(self.model)
