"""Clients side by side on a CPU, a core each: one client alone has too little work for all cores."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

T = TypeVar("T")
_AXES = {nn.Dropout1d: 3, nn.Dropout2d: 4, nn.Dropout3d: 5}
"""The layers that drop whole channels, and how many axes their batches (N, C, ...) have."""


class Team:
    """Threads that share the cores of a process.

    Example:
        >>> Team().run([lambda: 1, lambda: 2])
        [1, 2]
    """

    def __init__(self) -> None:
        self.threads = torch.get_num_threads()
        self._pool = ThreadPoolExecutor(self.threads, "robagg-client")

    def run(self, work: Sequence[Callable[[], T]], stop: Callable[[], object] = lambda: None) -> list[T]:
        """Do all of it at once, then return or raise what came of it: nobody is at work any more.

        `stop` is called when it is interrupted.
        """
        each = max(1, self.threads // len(work))
        jobs = [self._pool.submit(_share, part, each) for part in work]
        try:
            wait(jobs)
        except BaseException:
            stop()
            wait(jobs)
            raise
        finally:
            # Each thread has its own number of cores, but whoever sets one last sets it for new threads too.
            torch.set_num_threads(self.threads)
        return [job.result() for job in jobs]


def _share(part: Callable[[], T], cores: int) -> T:
    if torch.get_num_threads() != cores:  # asking comes first: a thread's first question sets its number
        torch.set_num_threads(cores)
    return part()


def stands_alone(model: nn.Module, loss: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor) -> bool:
    """Whether copies of the model can run at the same time and give what it gives, as far as a batch shows.

    It must not change a buffer or remember a call, nor draw but in its dropout layers, nor be watched by hooks.
    """
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    if x.device.type != "cpu" or any(getattr(module, name) for module in model.modules() for name in hooks):
        return False
    drawn = torch.get_rng_state(), random.getstate(), np.random.get_state(legacy=True)
    try:
        twin, generator = copy.deepcopy(model), torch.Generator()
        buffers = [buffer.clone() for buffer in twin.buffers()]
        with own_dropout(twin, generator), torch.no_grad():
            first = loss(twin(x), y)
            generator.manual_seed(generator.initial_seed())
            again = loss(twin(x), y)
        calm = torch.equal(drawn[0], torch.get_rng_state()) and drawn[1] == random.getstate()
        calm &= repr(drawn[2]) == repr(np.random.get_state(legacy=True))
        return calm and torch.equal(first, again) and all(map(torch.equal, buffers, twin.buffers()))
    except Exception:  # whatever a model cannot do as a copy, it may do as itself: there its error will be raised
        return False
    finally:
        torch.set_rng_state(drawn[0])
        random.setstate(drawn[1])
        np.random.set_state(drawn[2])


@contextmanager
def own_dropout(model: nn.Module, generator: torch.Generator) -> Iterator[None]:
    """Inside, the model's dropout layers draw from `generator` and not from torch's, which all threads share.

    Example:
        >>> model, generator = nn.Dropout(0.5), torch.Generator()
        >>> with own_dropout(model, generator):
        ...     first = model(torch.ones(9)), generator.manual_seed(generator.initial_seed())
        ...     torch.equal(first[0], model(torch.ones(9)))
        True
    """
    kinds = (nn.Dropout, *_AXES)
    layers = [m for m in model.modules() if isinstance(m, kinds) and type(m) in kinds and "forward" not in vars(m)]
    for layer in layers:
        layer.forward = partial(_drop, layer, generator)
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


def _drop(layer: nn.modules.dropout._DropoutNd, generator: torch.Generator, input: Tensor) -> Tensor:  # noqa: A002
    channels = type(layer) is not nn.Dropout
    if not layer.training or layer.p == 0.0 or (channels and input.ndim != _AXES[type(layer)]):
        output: Tensor = type(layer).forward(layer, input)  # from torch's own generator, where it draws
        return output
    keep = 1.0 - layer.p
    mask = input.new_empty(*input.shape[:2], *(1,) * (input.ndim - 2)) if channels else torch.empty_like(input)
    mask.bernoulli_(keep, generator=generator)
    return input * (mask.div_(keep) if keep else mask)
