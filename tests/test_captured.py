"""A captured rule; on a machine without a GPU, what it refuses. benchmarks/gpu.py checks it too."""

from __future__ import annotations

import gc
import re

import numpy as np
import pytest
import torch

import robagg as ra
from robagg.captured import undisturbed

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
        ra.capture(ra.TQ(f=1), rows)  # type: ignore[arg-type]


@needs_cuda
@pytest.mark.parametrize("text", ["tq", "cm", "krum", "nnm >> tq"])
def test_it_gives_what_the_rule_gives_also_with_broken_and_huge_rows(text: str) -> None:
    rule, x = ra.parse(text, f=3), torch.randn(11, 1000, device="cuda")
    aggregate = ra.capture(rule, x)
    x.copy_(torch.randn(11, 1000))
    first, wanted = aggregate(), rule(x)
    assert torch.equal(first, wanted)
    for bad in (torch.nan, 1e38):
        x[2, 5] = bad
        assert torch.equal(aggregate(), rule(x))
    assert torch.equal(first, wanted), "a later call wrote into an earlier value"


@needs_cuda
def test_every_call_draws_anew() -> None:
    rule, x = ra.parse("bucketing >> cm", f=3), torch.randn(11, 1000, device="cuda")
    draws = [torch.Generator("cuda").manual_seed(1) for _ in range(2)]
    aggregate = ra.capture(rule, x, generator=draws[0])
    values = [aggregate() for _ in range(2)]
    assert all(torch.equal(value, rule(x, generator=draws[1])) for value in values)
    assert not torch.equal(*values)


def test_no_garbage_is_collected_while_a_graph_is_captured() -> None:
    def fail() -> None:
        with undisturbed():
            assert not gc.isenabled()
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        fail()
    assert gc.isenabled()
