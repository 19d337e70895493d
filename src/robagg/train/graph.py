"""The round as a CUDA graph: launched as one, it costs what the device needs and no more."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from robagg.contract import deferred_alarm
from robagg.train.federation import Federation


def capture(federation: Federation) -> dict[bool, torch.cuda.CUDAGraph]:
    """The round as a CUDA graph, without and with the verdict; the federation is left as it was."""
    saved = federation.snapshot()
    graphs = {}
    with _apart(federation.device), deferred_alarm(federation.alarm):
        for verdict in (False, True):
            for _ in range(2):
                federation.round(None, verdict=verdict)
    with _undisturbed(), deferred_alarm(federation.alarm):
        pool = None
        for verdict in (False, True):
            graph = torch.cuda.CUDAGraph()
            for generator in federation.random.values():
                graph.register_generator_state(generator)
            with torch.cuda.graph(graph, pool=pool):
                federation.round(None, verdict=verdict)
            pool = graph.pool()
            graphs[verdict] = graph
    federation.restore(saved)
    return graphs


@contextmanager
def _apart(device: torch.device) -> Iterator[None]:
    """A side stream for the rounds before a capture, as torch asks for."""
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        yield
    torch.cuda.current_stream(device).wait_stream(stream)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """No garbage is collected within: what an earlier run left would be freed on the device, which ends a capture."""
    gc.collect()
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
