"""Nothing that comes from outside ends in anything but a sentence."""

from __future__ import annotations

import pytest
import torch

from files import npy
from fuzzing import TRIES, fuzz


@pytest.mark.parametrize("kind", TRIES)
def test_nothing_but_a_sentence(kind: str) -> None:
    if kind == "replies" and npy.npy is None:
        pytest.skip("needs the extra robagg[flower]")
    count = 2000 if kind == "safetensors" else 400
    assert 0 < fuzz(kind, count, seed=int(torch.randint(1 << 30, ()))) < count, "some are taken and some are not"
