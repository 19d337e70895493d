"""Layers on one dense batch of all clients: forward and the way back to the inputs are shared.

The clients lie one after the other in the batch: n clients of b samples make n*b samples, and whatever a layer is given
keeps that order, so that `reshape(n, -1, ...)` parts it by client. Weights' gradients are each client's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from robagg.models.batchnorm import ClientBatchNorm
from robagg.training.gradients.dense import convolution, norm
from robagg.training.gradients.dense.passes import Geometry, Pass, Sink, apply, values_of


def forwards(module: nn.Module) -> Callable[..., Tensor] | None:
    """The dense forward of a layer, if there is one: a layer with a forward of its own has none."""
    own = type(module).forward
    if "forward" in module.__dict__:
        return None
    if own is nn.Linear.forward:
        return linear
    if own is nn.Conv2d.forward and getattr(type(module), "_conv_forward", None) is nn.Conv2d._conv_forward:
        return conv2d
    if own is nn.MaxPool2d.forward:
        return max_pool
    if own is nn.GroupNorm.forward:
        return group_norm
    return batch_norm if own is ClientBatchNorm.forward else None


@contextmanager
def routed(layers: list[nn.Module], through: Pass) -> Iterator[None]:
    """Within, the layers run densely."""
    try:
        for layer in layers:
            # On the instance: the class, and with it every other model, stays as it is.
            forward = forwards(layer)
            assert forward is not None
            layer.__dict__["forward"] = partial(forward, layer, through)
        yield
    finally:
        for layer in layers:
            layer.__dict__.pop("forward", None)


def linear(layer: nn.Linear, through: Pass, x: Tensor) -> Tensor:
    weight, bias = through.cast(layer.weight.detach()), through.cast(values_of(layer.bias))
    sinks = through.sink(layer.weight), through.sink(layer.bias)
    output: Tensor = apply(_Linear, through.anchor, through.cast(x), weight, bias, through.clients, *sinks)
    return output


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        anchor: Tensor,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        clients: int,
        to_weight: Sink | None,
        to_bias: Sink | None,
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.clients, ctx.to_weight, ctx.to_bias = clients, to_weight, to_bias
        return functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (x, weight), (g,) = ctx.saved_tensors, grads
        own = g.reshape(ctx.clients, -1, g.shape[-1])
        if ctx.to_weight is not None:
            ctx.to_weight.multiply(own.mT, x.reshape(ctx.clients, -1, x.shape[-1]))
        if ctx.to_bias is not None:
            ctx.to_bias.put(own.sum(1))
        return None, g @ weight if ctx.needs_input_grad[1] else None, None, None, None, None, None


def conv2d(layer: nn.Conv2d, through: Pass, x: Tensor) -> Tensor:
    padding: Any = layer.padding
    if layer.padding_mode != "zeros" or padding == "same":
        # As torch itself does it; "same" may want one more on one side.
        mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
        x = functional.pad(x, layer._reversed_padding_repeated_twice, mode=mode)
        padding = (0, 0)
    padding = (0, 0) if padding == "valid" else padding
    geometry = Geometry(layer.kernel_size, layer.stride, padding, layer.dilation, layer.groups)
    weight, bias = through.cast(layer.weight.detach()), through.cast(values_of(layer.bias))
    sinks = through.sink(layer.weight), through.sink(layer.bias)
    x = through.cast(x)  # type: ignore[assignment]
    output: Tensor = apply(_Conv2d, through.anchor, x, weight, bias, geometry, through, *sinks)
    return output


class _Conv2d(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        anchor: Tensor,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        geometry: Geometry,
        through: Pass,
        to_weight: Sink | None,
        to_bias: Sink | None,
    ) -> Tensor:
        form = convolution.layout(x)
        weight = weight.contiguous(memory_format=form)  # once, not again on the way back
        ctx.save_for_backward(x, weight)
        ctx.geometry, ctx.through, ctx.sinks = geometry, through, (to_weight, to_bias)
        return functional.conv2d(x, weight, bias, geometry.stride, geometry.padding, geometry.dilation, geometry.groups)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        g = grads[0]
        if convolution.layout(x) is torch.channels_last:
            g = convolution.channels_last(g)
        g = g if convolution.layout(g) is torch.channels_last else g.contiguous()
        to_weight, to_bias = ctx.sinks
        convolution.lay_down(g, x, ctx.geometry, ctx.through, to_weight, to_bias)
        into = convolution.inputs(g, x, weight, ctx.geometry) if ctx.needs_input_grad[1] else None
        return None, into, None, None, None, None, None, None


def batch_norm(layer: ClientBatchNorm, through: Pass, x: Tensor) -> Tensor:
    if not layer.training and layer.running_mean is not None:
        raise RuntimeError("BatchNorm in evaluation has no statistics of its clients to show")
    count = x.numel() // (x.shape[1] * through.clients)
    if count < 2:
        raise ValueError(f"a batch for BatchNorm must have more than one value per channel in training, got {count}")
    output, statistics = _normalise(layer, through, x, norm.choose(x, fused=through.fused))
    if layer.running_mean is not None:
        through.statistics[layer] = statistics
    return output


def group_norm(layer: nn.GroupNorm, through: Pass, x: Tensor) -> Tensor:
    return _normalise(layer, through, x, norm.Groups(layer.num_groups))[0]


def _normalise(
    layer: ClientBatchNorm | nn.GroupNorm, through: Pass, x: Tensor, norm: norm.Norm
) -> tuple[Tensor, Tensor]:
    """The output, and the clients' statistics."""
    parameters = (layer.weight, layer.bias)
    values, sinks = map(values_of, parameters), map(through.sink, parameters)
    output: Tensor
    output, statistics = apply(_Norm, through.anchor, x, *values, layer.eps, through.clients, norm, *sinks)
    return output, statistics


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        anchor: Tensor,
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        eps: float,
        clients: int,
        norm: norm.Norm,
        to_weight: Sink | None,
        to_bias: Sink | None,
    ) -> tuple[Tensor, Tensor]:
        output, mean, inverse, statistics = norm.forward(x, weight, bias, eps, clients)
        ctx.save_for_backward(x, mean, inverse, *([] if weight is None else [weight]))
        ctx.norm, ctx.sinks, ctx.eps = norm, (to_weight, to_bias), eps
        ctx.mark_non_differentiable(statistics)
        return output, statistics

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, mean, inverse, *weight = ctx.saved_tensors
        into, by_weight, by_bias = ctx.norm.backward(grads[0], x, mean, inverse, weight[0] if weight else None, ctx.eps)
        for sink, value in zip(ctx.sinks, (by_weight, by_bias), strict=True):
            if sink is not None:
                sink.put(value)
        return None, into, None, None, None, None, None, None, None


def max_pool(layer: nn.MaxPool2d, through: Pass, x: Tensor) -> Tensor:
    """Nothing in it is a client's own; on a GPU torch's kernels take several times what the memory needs."""
    kernel, stride = ((k, k) if isinstance(k, int) else tuple(k) for k in (layer.kernel_size, layer.stride))
    plain = kernel == stride and not any((layer.padding, layer.ceil_mode, layer.return_indices)) and layer.dilation == 1
    fits = x.ndim == 4 and convolution.layout(x) is torch.channels_last and x.numel() < 2**31
    # Windows are written out in the kernel: large ones would take long to compile.
    small = kernel[0] * kernel[1] <= 16 and all(k <= size for k, size in zip(kernel, x.shape[2:], strict=False))
    if through.fused and plain and fits and small and x.dtype != torch.float64:
        output: Tensor = apply(_MaxPool, x, kernel)
        return output
    pooled: Tensor = nn.MaxPool2d.forward(layer, x)
    return pooled


class _MaxPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, kernel: tuple[int, int]) -> Tensor:
        from robagg.training.gradients.triton import pool

        output, where = pool.forward(x, kernel)
        ctx.save_for_backward(where)
        ctx.shape, ctx.kernel = x.shape, kernel
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        from robagg.training.gradients.triton import pool

        (where,) = ctx.saved_tensors
        return pool.backward(grads[0], where, ctx.shape, ctx.kernel), None
