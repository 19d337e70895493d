"""Clients side by side on a CPU, a core each: one client alone has too little work for all cores."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor, nn

T = TypeVar("T")
_AXES = {nn.Dropout1d: 3, nn.Dropout2d: 4, nn.Dropout3d: 5}
"""The layers that drop whole channels, and how many axes their batches (N, C, ...) have."""


class Team:
    """Threads that share the cores: each has `threads // size` of them to itself.

    Example:
        >>> Team(2).run([lambda: 1, lambda: 2])
        [1, 2]
    """

    def __init__(self, size: int) -> None:
        self.size, self.threads = size, torch.get_num_threads()
        ready = threading.Barrier(size)

        def begin() -> None:
            torch.get_num_threads()  # a thread's first question sets its number to the process's, and would do it later
            torch.set_num_threads(max(1, self.threads // size))
            ready.wait()

        self._pool = ThreadPoolExecutor(size, "robagg-client", initializer=begin)
        self.run([lambda: None] * size)
        # Each thread has its own number, but whoever sets one last sets it for new threads too.
        torch.set_num_threads(self.threads)

    def run(self, work: Sequence[Callable[[], T]]) -> list[T]:
        """Do all of it, then return or raise what came of it: nobody is at work any more."""
        jobs = [self._pool.submit(part) for part in work]
        try:
            wait(jobs)
        except BaseException:  # interrupted
            wait(jobs)
            raise
        return [job.result() for job in jobs]


def stands_alone(model: nn.Module, x: Tensor) -> bool:
    """Whether copies of the model can run at the same time and give what it gives.

    It must not change a buffer, nor draw but in its dropout layers, nor be watched by hooks: a batch shows.
    """
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    if x.device.type != "cpu" or any(getattr(module, name) for module in model.modules() for name in hooks):
        return False
    try:
        twin = copy.deepcopy(model)
        before = [buffer.clone() for buffer in twin.buffers()]
        with torch.random.fork_rng(devices=[]), own_dropout(twin, torch.Generator()):
            state = torch.get_rng_state()
            twin(x)
            return torch.equal(state, torch.get_rng_state()) and all(map(torch.equal, before, twin.buffers()))
    except Exception:  # whatever a model cannot do as a copy, it may do as itself: there its error will be told
        return False


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
    layers = [m for m in model.modules() if isinstance(m, kinds) and type(m) in kinds]
    for layer in layers:
        layer.forward = partial(_drop, layer, generator)
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


def _drop(layer: nn.modules.dropout._DropoutNd, generator: torch.Generator, x: Tensor) -> Tensor:
    channels = type(layer) is not nn.Dropout
    if not layer.training or layer.p == 0.0 or (channels and x.ndim != _AXES[type(layer)]):
        output: Tensor = type(layer).forward(layer, x)  # from torch's own generator, where it draws
        return output
    keep = 1.0 - layer.p
    mask = x.new_empty(*x.shape[:2], *(1,) * (x.ndim - 2)) if channels else torch.empty_like(x)
    mask.bernoulli_(keep, generator=generator)
    return x * (mask.div_(keep) if keep else mask)
