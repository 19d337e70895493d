"""The Triton kernels of the dense batch give what torch gives, in Triton's interpreter."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

KERNELS = """
import torch
from torch.nn import functional
from robagg.training.gradients.dense import convolution as dc
from robagg.training.gradients.dense import norm as dense_norm
from robagg.training.gradients.triton import norm as triton_norm
from robagg.training.gradients.triton import pool as triton_pool
from robagg.training.gradients.dense.layers import max_pool
from robagg.training.gradients.dense.passes import Geometry, Pass, Sink
for n, b, c, o, k, s, p, d in (
    (2, 3, 1, 5, 3, 1, 0, 1), (2, 2, 18, 32, 3, 2, 1, 1), (3, 2, 16, 20, 3, 1, 1, 1), (2, 2, 50, 70, 2, 1, 1, 2),
    (2, 2, 6, 4, 1, 2, 0, 1), (2, 1, 70, 3, 3, 1, 2, 1), (2, 1, 64, 5, 3, 2, 0, 1),
    (1, 2, 64, 5, 3, 2, 2, 2), (1, 2, 4, 16, 3, 1, 1, 1),
):
    # Large images are summed in several ranges.
    size = (41, 33) if n == 1 else (6, 5)
    x, w = dc.channels_last(torch.randn(n * b, c, *size)), torch.randn(o, c, k, k)
    g = dc.channels_last(torch.randn_like(functional.conv2d(x, w, None, s, p, d)))
    geometry, sinks = Geometry((k, k), (s, s), (p, p), (d, d), 1), []
    for fused in (True, False):
        through = Pass(n, {}, torch.zeros(()), fused=fused)
        sinks.append((Sink(torch.empty(n, *w.shape)), Sink(torch.empty(n, o))))
        dc.lay_down(g, x, geometry, through, *sinks[-1])
        dc.lay_down(g, x, geometry, through, sinks[-1][0], None)  # a layer used twice adds
    for mine, other in zip(*sinks):
        torch.testing.assert_close(mine.rows, other.rows, rtol=1e-4, atol=1e-3)
for c in (3, 70):
    x, g = (torch.randn(6, c, 5, 5).contiguous(memory_format=torch.channels_last) * 2 + 3 for _ in range(2))
    weight, bias, seen = torch.randn(c), torch.randn(c), []
    for norm in (triton_norm.Fused(), dense_norm.Whole()):
        output, mean, inverse, statistics = norm.forward(x, weight, bias, 1e-5, 3)
        seen.append([output, mean, inverse, statistics, *norm.backward(g, x, mean, inverse, weight, 1e-5)])
    for mine, other in zip(*seen):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)
for shape, kernel in (((3, 5, 6, 8), (2, 2)), ((2, 1, 7, 7), (3, 2)), ((2, 64, 5, 4), (2, 4))):
    x = torch.randn(shape).mul(2).round().contiguous(memory_format=torch.channels_last).requires_grad_()  # with ties
    if shape[1] == 5:
        with torch.no_grad():
            x[1, 2, 3, 4] = torch.nan
    wanted = functional.max_pool2d(x, kernel)
    g = torch.randn_like(wanted)
    wanted.backward(g)
    out, where = triton_pool.forward(x.detach(), kernel)
    torch.testing.assert_close(out, wanted.detach(), rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(triton_pool.backward(g, where, x.shape, kernel), x.grad, rtol=0, atol=0)
through = Pass(1, {}, torch.zeros(()), fused=True)
for options in (
    {}, {"stride": 3}, {"padding": 1}, {"dilation": 2}, {"ceil_mode": True}, {"stride": (2, 1)}, {"padding": (1, 0)},
):
    layer = torch.nn.MaxPool2d(2, **options)
    x = torch.randn(2, 3, 7, 6).contiguous(memory_format=torch.channels_last).requires_grad_()
    wanted = layer(x)
    g = torch.randn_like(wanted)
    there = torch.autograd.grad(wanted, x, g)[0]
    output = max_pool(layer, through, x)
    assert ("_MaxPool" in type(output.grad_fn).__name__) == (not options), options
    torch.testing.assert_close(output, wanted, rtol=0, atol=0)
    torch.testing.assert_close(torch.autograd.grad(output, x, g)[0], there, rtol=0, atol=0)
both = max_pool(torch.nn.MaxPool2d(2, return_indices=True), through, x)
assert len(both) == 2
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_the_kernels_agree_in_tritons_interpreter() -> None:
    # In a process of its own: whether Triton interprets is settled when it is imported.
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", KERNELS], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
