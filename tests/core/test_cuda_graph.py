"""A captured rule; on a machine without a GPU, what it refuses. benchmarks/gpu.py checks it too."""

from __future__ import annotations

import gc
import re

import numpy as np
import pytest
import torch

import robagg as ra
from robagg._core.cuda_graph import undisturbed

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.mark.parametrize(
    ("rows", "came"),
    [
        (torch.zeros(3, 4), "(3, 4) on cpu"),
        (torch.zeros(3, 4, 5), "(3, 4, 5) on cpu"),
        (np.zeros((3, 4)), "ndarray"),
        ([torch.zeros(4)], "list"),
    ],
    ids=["cpu", "three dimensions", "array", "list"],
)
def test_what_cannot_be_captured_is_refused_in_a_sentence(rows: object, came: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"an (n, d) tensor on a CUDA device, got {came}")):
        ra.Captured(ra.TQ(f=1), rows)  # type: ignore[arg-type]


class Stand:
    """A graph's stand-in on a CPU: a replay does again what was captured, and nobody asks for the alarm in it."""

    def __init__(self, captured: ra.Captured) -> None:
        self.captured = captured

    def replay(self) -> None:
        self.captured._value = self.captured._run()


@pytest.mark.parametrize("text", ["tq", "bucketing >> cm", "nnm >> krum"])
def test_calls_with_broken_rows_give_and_draw_what_the_rule_does(text: str) -> None:
    rule, x = ra.parse(text, f=3), torch.randn(11, 50)
    draws = [torch.Generator().manual_seed(1) for _ in range(2)]
    captured = ra.Captured.__new__(ra.Captured)
    captured.rule, captured.buffer, captured.generator = rule, x, draws[0]
    captured._alarm, captured._graph = torch.zeros((), dtype=torch.bool), Stand(captured)  # type: ignore[assignment]
    for first in (1.0, torch.nan, 1e38, 1.0):
        x[0] = first
        assert torch.equal(captured(), rule(x, generator=draws[1]))


@needs_cuda
@pytest.mark.parametrize("text", ["tq", "cm", "krum", "nnm >> tq"])
def test_it_gives_what_the_rule_gives_also_with_broken_and_huge_rows(text: str) -> None:
    rule, x = ra.parse(text, f=3), torch.randn(11, 1000, device="cuda")
    aggregate = ra.Captured(rule, x)
    x.copy_(torch.randn(11, 1000))
    first, wanted = aggregate(), rule(x)
    assert torch.equal(first, wanted)
    for bad in (torch.nan, 1e38):
        x[2, 5] = bad
        assert torch.equal(aggregate(), rule(x))
    assert torch.equal(first, wanted), "a later call wrote into an earlier value"


@needs_cuda
def test_every_call_draws_anew_and_what_the_rule_would_draw() -> None:
    rule, x = ra.parse("bucketing >> cm", f=3), torch.randn(11, 1000, device="cuda")
    draws = [torch.Generator("cuda").manual_seed(1) for _ in range(2)]
    aggregate = ra.Captured(rule, x, generator=draws[0])
    values = []
    for first in (1.0, 1.0, torch.nan, 1.0):
        x[0] = first
        values.append(aggregate())
        assert torch.equal(values[-1], rule(x, generator=draws[1]))
    assert not torch.equal(values[0], values[1])


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_the_buffer_may_lie_on_another_device_than_the_current_one() -> None:
    rule, x = ra.TQ(f=3), torch.randn(11, 1000, device="cuda:1")
    aggregate = ra.Captured(rule, x)
    x.copy_(torch.randn(11, 1000))
    assert torch.equal(aggregate(), rule(x))


def test_no_garbage_is_collected_while_a_graph_is_captured() -> None:
    def fail() -> None:
        with undisturbed():
            assert not gc.isenabled()
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        fail()
    assert gc.isenabled()
