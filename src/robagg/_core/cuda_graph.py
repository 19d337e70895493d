"""A rule captured on one buffer, as a CUDA graph: for loops of one's own on a GPU.

Called one by one, a rule's kernels wait for Python to launch them, which for a small model takes longer than they do.
A graph launches them together.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from robagg._core.aggregate import Request, aggregate
from robagg._core.rule import Rule
from robagg._core.stack import read
from robagg._core.verdict import rebuild


class Captured:
    """A rule on a buffer that is filled in place each round: one launch, a look at the alarm, and the kernels.

    A call gives what `rule(buffer)` gives, broken and huge rows included: those raise the alarm, and the call is done
    again without the graph. Of a rule of one's own no method may ask the device for a number, or it cannot be captured.

    Args:
        rule: a rule or a chain.
        buffer: (n, d) on a CUDA device. The graph reads this very tensor: fill it with `copy_`, do not replace it.
        generator: on the buffer's device, for what is random; None means torch's default one.

    Example:
        >>> import robagg as ra
        >>> x = torch.randn(20, 1000, device="cuda")  # doctest: +SKIP
        >>> aggregate = ra.Captured(ra.TQ(f=6), x)  # doctest: +SKIP
        >>> x.copy_(torch.randn(20, 1000))  # doctest: +SKIP
        >>> aggregate().shape  # doctest: +SKIP
        torch.Size([1000])
    """

    def __init__(self, rule: Rule, buffer: Tensor, *, generator: torch.Generator | None = None) -> None:
        if not isinstance(buffer, Tensor) or buffer.ndim != 2 or not buffer.is_cuda:
            came = f"{tuple(buffer.shape)} on {buffer.device}" if isinstance(buffer, Tensor) else type(buffer).__name__
            raise ValueError(f"the rows of a CUDA graph must be an (n, d) tensor on a CUDA device, got {came}")
        self.rule, self.buffer, self.generator = rule, buffer, generator
        self._alarm = torch.zeros((), dtype=torch.bool, device=buffer.device)
        self._graph = torch.cuda.CUDAGraph()
        if generator is not None:
            self._graph.register_generator_state(generator)
        with _untouched(buffer.device, generator):
            with apart(buffer.device):
                self._run()
                self._run()
            # On a stream of the buffer's device: torch's own belongs to one device, and work on others is not recorded.
            with undisturbed(), torch.cuda.graph(self._graph, stream=make_stream(buffer.device)):
                self._value = self._run()

    def __call__(self) -> Tensor:
        """The aggregate, (d,), in a tensor of its own; what the graph cannot compute is done without it."""
        # As in an uncaptured call, a second attempt draws what the first drew.
        mark = self.generator.get_state() if self.generator is not None and self.rule.mixers else None
        self._graph.replay()
        value = self._value.clone()
        if not self._alarm:
            return value
        if self.generator is not None and mark is not None:
            self.generator.set_state(mark)
        again: Tensor = self.rule(self.buffer, generator=self.generator)
        return again

    def _run(self) -> Tensor:
        self._alarm.zero_()
        request = Request(generator=self.generator, alarm=self._alarm)
        value: Tensor = rebuild(*aggregate(self.rule, read(self.buffer), request))
        return value


@contextmanager
def _untouched(device: torch.device, generator: torch.Generator | None) -> Iterator[None]:
    """What is drawn within is not drawn from the generator; None: torch's own for the device."""
    before = torch.cuda.get_rng_state(device) if generator is None else generator.get_state()
    try:
        yield
    finally:
        if generator is None:
            torch.cuda.set_rng_state(before, device)
        else:
            generator.set_state(before)


def make_stream(device: torch.device) -> torch.cuda.Stream:
    """A stream of the device; it need not be the current one."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


@contextmanager
def apart(device: torch.device) -> Iterator[None]:
    """A side stream for what runs before a capture, as torch asks for."""
    stream = make_stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        yield
    torch.cuda.current_stream(device).wait_stream(stream)


@contextmanager
def undisturbed() -> Iterator[None]:
    """No garbage is collected within: what an earlier run left would be freed on the device, which ends a capture."""
    gc.collect()
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
