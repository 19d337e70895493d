"""Which device is the current one: Triton launches there, wherever the tensors lie."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch


def on(device: torch.device) -> AbstractContextManager[Any]:
    """Within, a CUDA device is the current one; for others nothing changes."""
    here = device.type != "cuda" or device.index == torch.cuda.current_device()
    return nullcontext() if here else torch.cuda.device(device)
