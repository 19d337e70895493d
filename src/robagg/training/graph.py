"""The round as a CUDA graph: launched as one, it costs what the device needs and no more."""

from __future__ import annotations

import torch

from robagg._core.cuda_graph import apart, make_stream, undisturbed
from robagg.training.federation import Federation
from robagg.training.snapshot import restore, save


def capture(federation: Federation) -> dict[bool, torch.cuda.CUDAGraph]:
    """The round as a CUDA graph, without and with the verdict; the federation is left as it was."""
    saved = save(federation)
    graphs = {}
    with apart(federation.device):
        for verdict in (False, True):
            for _ in range(2):
                federation.round(None, verdict=verdict)
    with undisturbed():
        pool, stream = None, make_stream(federation.device)
        for verdict in (False, True):
            graph = torch.cuda.CUDAGraph()
            for generator in federation.random.values():
                graph.register_generator_state(generator)
            with torch.cuda.graph(graph, pool=pool, stream=stream):
                federation.round(None, verdict=verdict)
            pool = graph.pool()
            graphs[verdict] = graph
    restore(federation, saved)
    return graphs
