"""How images lie in memory while a CPU trains on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


@contextmanager
def channels_last(model: nn.Module) -> Iterator[None]:
    """Inside, the model's convolutions on a CPU get their images channels last, and so do the gradients of its pools.

    The values are the same to rounding. On the paper's CNN a gradient takes about two thirds of the time: most of the
    gain is in pools, which torch does pixel by pixel otherwise, and in not turning images round on the way back.

    Example:
        >>> model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2))
        >>> with channels_last(model):
        ...     model(torch.zeros(2, 3, 8, 8)).is_contiguous(memory_format=torch.channels_last)
        True
        >>> model(torch.zeros(2, 3, 8, 8)).is_contiguous(memory_format=torch.channels_last)
        False
    """
    handles = []
    for module in model.modules():
        if isinstance(module, nn.Conv2d) and module.weight.device.type == "cpu":
            handles.append(module.register_forward_pre_hook(_turn_input))
        elif isinstance(module, nn.GroupNorm):
            handles.append(module.register_forward_pre_hook(_turn_back))
        elif isinstance(module, nn.MaxPool2d | nn.AvgPool2d | nn.AdaptiveAvgPool2d):
            handles.append(module.register_forward_hook(_turn_gradient))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _turn(x: Tensor) -> Tensor:
    return x.to(memory_format=torch.channels_last) if x.ndim == 4 and x.device.type == "cpu" else x


def _turn_input(_: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return (_turn(inputs[0]), *inputs[1:])


def _turn_back(_: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """torch's GroupNorm on a CPU reads past its memory on the way back from channels-last images without a gradient."""
    x = inputs[0]
    return (x if x.requires_grad or x.device.type != "cpu" else x.contiguous(), *inputs[1:])


def _turn_gradient(_: nn.Module, __: tuple[Any, ...], output: Any) -> None:
    if isinstance(output, Tensor) and output.requires_grad:
        output.register_hook(_turn)  # type: ignore[no-untyped-call]
