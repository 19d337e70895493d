"""What the layers of one dense pass share: how many clients there are, and where their gradients go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Geometry:
    """How the kernel moves over the image."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int


@dataclass
class Sink:
    """Where one parameter's gradients go: rows (clients, *shape) of the stack. A second use of the parameter adds."""

    rows: Tensor
    written: bool = False

    def put(self, value: Tensor) -> None:
        """Lay down (clients, *shape), or add it to what another use left."""
        value = value.view(self.rows.shape) if value.is_contiguous() else value.reshape(self.rows.shape)
        self.rows.add_(value) if self.written else self.rows.copy_(value)
        self.written = True

    def multiply(self, a: Tensor, b: Tensor) -> None:
        """Lay down a @ b of shape (clients, O, -1), straight from the product where dtypes agree."""
        if a.dtype != self.rows.dtype:
            return self.put(torch.bmm(a, b))
        rows = self.rows.flatten(2)
        rows.baddbmm_(a, b) if self.written else torch.bmm(a, b, out=rows)
        self.written = True


@dataclass
class Pass:
    """What all layers of one pass share."""

    clients: int
    sinks: Mapping[Tensor, Sink]
    anchor: Tensor
    """Needs a gradient, so that a first layer, whose input needs none, is on the way back too."""
    dtype: torch.dtype | None = None
    """What products are computed in; None: as they come."""
    fused: bool = False
    """Whether layers may run on Triton kernels."""
    statistics: dict[nn.Module, Tensor] = field(default_factory=dict)

    def sink(self, parameter: Tensor | None) -> Sink | None:
        return None if parameter is None else self.sinks.get(parameter)

    def cast(self, tensor: Tensor | None) -> Tensor | None:
        return tensor if tensor is None or self.dtype is None else tensor.to(self.dtype)


def values_of(parameter: Tensor | None) -> Tensor | None:
    return None if parameter is None else parameter.detach()


def apply(function: type[torch.autograd.Function], *arguments: Any) -> Any:
    return function.apply(*arguments)  # type: ignore[no-untyped-call]
