"""Gradients of all clients on one shared model: a loop on a CPU, `vmap` on an accelerator, the same to rounding."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.func import grad_and_value, vmap

from robagg.models import batchnorm
from robagg.models.flat import Flat
from robagg.training.gradients.layout import channels_last
from robagg.training.gradients.protocol import AtOnce, Engine, Receiver
from robagg.training.gradients.side_by_side import Team, own_dropout, stands_alone
from robagg.training.losses import Loss
from robagg.training.optimisers import Optimiser


@dataclass(frozen=True)
class Work:
    """What a client does in a round: `steps` steps of gradient descent at `rate` from the shared weights.

    It sends the sum of their gradients, which at that rate is the way it went. Each gradient has `decay` times the
    weights added.
    """

    loss: Loss
    steps: int = 1
    rate: float | Tensor = 1.0
    """A tensor () where it changes from round to round."""
    decay: float = 0.0


class Looped(Engine):
    """One client after the other, on the model itself; on a CPU with several cores, one after the other on each."""

    def __init__(self, model: nn.Module, flat: Flat, w: Tensor, work: Work) -> None:
        self.model, self.flat, self.w, self.work = model, flat, w, work
        flat.bind(w)
        self._alone: bool | None = None
        self._flats = [flat]
        self._team: Team | None = None

    def fill(self, x: Tensor, y: Tensor, into: Receiver) -> tuple[Tensor, Tensor]:
        return self.run(x, y, into.take, into.find_optimiser)

    def run(
        self,
        x: Tensor,
        y: Tensor,
        use: Callable[[int, list[Tensor]], None],
        find_optimiser: Callable[[int], Optimiser | None] = lambda _: None,
    ) -> tuple[Tensor, Tensor]:
        """Call `use(i, gradient)` for each client's batches x (clients, steps*b, ...), y; the losses (clients,) and
        BatchNorm statistics (clients, s). Several calls may run at the same time, in any order."""
        if self._alone is None:  # after local steps the weights, which all share, differ
            self._alone = self.work.steps == 1 and stands_alone(self.model, self.work.loss, x[0], y[0])
        count = len(x)
        losses, statistics = [x.new_empty(0)] * count, [x.new_empty(0)] * count
        # Every client draws its dropout from a seed of its own, so that it is the same on any number of cores.
        seeds = torch.randint(2**63 - 1, (count,)).tolist() if self._alone else []
        todo = iter(range(count))

        def go_round(flat: Flat) -> None:
            generator = torch.Generator()
            with channels_last(flat.model), own_dropout(flat.model, generator) if seeds else nullcontext():
                try:
                    for i in todo:
                        if seeds:
                            generator.manual_seed(seeds[i])
                        gradient, losses[i] = self._one(flat, x[i], y[i], find_optimiser(i))
                        statistics[i] = batchnorm.collect(flat.model)
                        use(i, gradient)
                finally:
                    deque(todo, 0)  # after a failure the others need not go on

        # Other threads would not know of these modes, which are this one's.
        plain = torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")
        size = min(count, torch.get_num_threads()) if self._alone and plain else 1
        if size > 1:
            self._meet(size).run([partial(go_round, flat) for flat in self._flats[:size]], partial(deque, todo, 0))
        else:
            go_round(self.flat)
        return torch.stack(losses), torch.stack(statistics)

    def _meet(self, size: int) -> Team:
        """The team, with a model bound to the same weights for each of so many clients at once."""
        if self._team is None or self._team.threads != torch.get_num_threads():
            self._team = Team()
        fixed = [*self.model.buffers(), *(p for p in self.model.parameters() if not p.requires_grad)]
        while len(self._flats) < size:
            flat = Flat(copy.deepcopy(self.model, {id(tensor): tensor for tensor in fixed}))
            flat.bind(self.w)
            self._flats.append(flat)
        return self._team

    def _one(self, flat: Flat, x: Tensor, y: Tensor, optimiser: Optimiser | None) -> tuple[list[Tensor], Tensor]:
        steps = self.work.steps
        if steps == 1:
            return self._gradient(flat, x, y)
        losses: list[Tensor] = []

        def descend() -> Iterator[list[Tensor]]:
            for xs, ys in zip(x.chunk(steps), y.chunk(steps), strict=True):
                gradient, loss = self._gradient(flat, xs, ys)
                losses.append(loss)
                yield gradient

        sent = self._sum(descend()) if optimiser is None else optimiser.walk(descend())
        return list(self.flat.views(sent).values()), losses[0]

    def _sum(self, gradients: Iterator[list[Tensor]]) -> Tensor:
        """The sum of the gradients on the way that plain descent goes; the weights are where they were afterwards."""
        start, sent = self.w.clone(), torch.zeros_like(self.w)
        for gradient in gradients:
            sent += self.flat.join(gradient)
            torch.sub(start, sent * self.work.rate, out=self.w)
        self.w.copy_(start)
        return sent

    def _gradient(self, flat: Flat, x: Tensor, y: Tensor) -> tuple[list[Tensor], Tensor]:
        loss = self.work.loss(flat.model(x), y)
        parts = torch.autograd.grad(loss, flat.parameters, allow_unused=True)
        full = [torch.zeros_like(p) if g is None else g for p, g in zip(flat.parameters, parts, strict=True)]
        if self.work.decay:
            full = [g.add(p.detach(), alpha=self.work.decay) for p, g in zip(flat.parameters, full, strict=True)]
        return full, loss.detach()


class Mapped(AtOnce):
    """All clients at once under `vmap`: no client needs a copy of the model, and a CUDA graph can hold it."""

    def __init__(self, model: nn.Module, flat: Flat, w: Tensor, work: Work) -> None:
        self.model, self.flat, self.w, self.work = model, flat, w, work
        flat.bind(w)
        self._mapped = vmap(self._one, in_dims=(None, 0, 0), randomness="different")

    def run(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        gradients, losses, statistics = self._mapped(self.w, x, y)
        return gradients, losses, statistics

    def _one(self, w: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        steps = self.work.steps
        here, sent, first = w, torch.zeros_like(w), w.new_zeros(())
        for k, (xs, ys) in enumerate(zip(x.chunk(steps), y.chunk(steps), strict=True)):
            gradient, (loss, statistics) = grad_and_value(self._loss, has_aux=True)(here, xs, ys)
            gradient = gradient + self.work.decay * here if self.work.decay else gradient
            first = loss if k == 0 else first
            if steps == 1:
                return gradient, loss, statistics
            sent = sent + gradient
            here = w - self.work.rate * sent
        return sent, first, statistics

    def _loss(self, w: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        output = self.flat.forward(w, x)
        return self.work.loss(output, y), batchnorm.collect(self.model)
