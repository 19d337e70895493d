"""Weight gradients of a convolution, one for each client, from one dense batch.

G_i[o, c, k] = sum over client i's samples s and places p of g[s, o, p] * x[s, c, stride * p + dilation * k - padding].
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from robagg.training.gradients.dense.passes import Geometry, Pass, Sink


def layout(x: Tensor) -> torch.memory_format:
    """How x lies in memory. With one channel both would do; its stride tells what was meant, to cuDNN too."""
    last = x.is_contiguous(memory_format=torch.channels_last) and x.stride(1) == 1
    return torch.channels_last if last else torch.contiguous_format


def channels_last(x: Tensor) -> Tensor:
    """x with its channels last, said so by its strides even where there is only one."""
    x = x.contiguous(memory_format=torch.channels_last)
    h, w = x.shape[2:]
    return x.as_strided(x.shape, (h * w, 1, w, 1)) if x.shape[1] == 1 else x


def inputs(g: Tensor, x: Tensor, weight: Tensor, geometry: Geometry) -> Tensor:
    """The gradient with respect to x, of the whole batch at once."""
    single = geometry.kernel == (1, 1) and not any(geometry.padding) and geometry.groups == 1
    if single and max(geometry.stride) > 1 and layout(x) is torch.channels_last:
        # cuDNN turns such images to another layout and back; only the places that were seen get a product, which is
        # as fine as torch's matrix products are set to be.
        into = torch.zeros_like(x, memory_format=torch.channels_last)
        seen = into.permute(0, 2, 3, 1)[:, :: geometry.stride[0], :: geometry.stride[1]]
        seen.copy_(g.permute(0, 2, 3, 1) @ weight.flatten(1))
        return into
    return _backward(g, x, weight, geometry, geometry.groups, 0)


def lay_down(
    g: Tensor, x: Tensor, geometry: Geometry, through: Pass, to_weight: Sink | None, to_bias: Sink | None
) -> None:
    """Put each client's gradients of weight and bias where they go."""
    clients = through.clients
    if through.fused and to_weight is not None and _fits(g, x, geometry):
        from robagg.training.gradients.triton.weights import weights_and_biases

        weights_and_biases(g, x, geometry, clients, to_weight, to_bias)
        return
    if to_bias is not None:
        # By place first, then by sample: both sums run along memory.
        sums = _part(g, clients).sum((1, 3, 4))
        to_bias.put(sums)
    if to_weight is not None:
        (unfolded if geometry.groups == 1 else grouped)(g, x, geometry, clients, to_weight)


def _fits(g: Tensor, x: Tensor, geometry: Geometry) -> bool:
    # The kernel counts in 32 bits, and adds in float32.
    small = max(x.numel(), g.numel()) < 2**31 and x.dtype != torch.float64
    return small and geometry.groups == 1 and layout(x) is torch.channels_last


def unfolded(g: Tensor, x: Tensor, geometry: Geometry, clients: int, to: Sink) -> None:
    """One batched product over unfolded inputs."""
    (h, w), channels = geometry.kernel, g.shape[1]
    windows = _windows(x, g, geometry)  # (N, Ho, Wo, h, w, C), a view
    if layout(x) is torch.channels_last:
        own = g.permute(0, 2, 3, 1).reshape(clients, -1, channels)
        product = torch.bmm(own.mT, windows.reshape(clients, own.shape[1], -1))
        to.put(product.view(clients, channels, h, w, -1).permute(0, 1, 4, 2, 3))
        return
    own = _part(g, clients).transpose(1, 2).reshape(clients, channels, -1)
    columns = _part(windows, clients).permute(0, 6, 4, 5, 1, 2, 3).reshape(clients, -1, own.shape[2])
    to.multiply(own, columns.mT)


def grouped(g: Tensor, x: Tensor, geometry: Geometry, clients: int, to: Sink) -> None:
    """The library's own kernel, with the clients as groups of channels."""
    own, image = (_part(t, clients).transpose(0, 1).flatten(1, 2) for t in (g, x))
    weight = g.new_empty(()).expand(clients * g.shape[1], x.shape[1] // geometry.groups, *geometry.kernel)
    to.put(_backward(own, image, weight, geometry, clients * geometry.groups, 1))


def _part(t: Tensor, clients: int) -> Tensor:
    return t.view(clients, -1, *t.shape[1:])


def _pad(x: Tensor, geometry: Geometry) -> Tensor:
    top, left = geometry.padding
    return functional.pad(x, (left, left, top, top)) if top or left else x


def _windows(x: Tensor, g: Tensor, geometry: Geometry) -> Tensor:
    """What each place of the output sees, (N, Ho, Wo, h, w, C), without a copy but for the padding."""
    image = _pad(x, geometry)
    n, c, y, z = image.stride()
    (h, w), (down, right), (tall, wide) = geometry.kernel, geometry.stride, geometry.dilation
    size = (len(x), *g.shape[2:], h, w, x.shape[1])
    return image.as_strided(size, (n, y * down, z * right, y * tall, z * wide, c))


def _backward(g: Tensor, x: Tensor, weight: Tensor, geometry: Geometry, groups: int, which: int) -> Tensor:
    mask = [which == 0, which == 1, False]
    result: Tensor = torch.ops.aten.convolution_backward(
        g, x, weight, None, geometry.stride, geometry.padding, geometry.dilation, False, [0, 0], groups, mask
    )[which]
    return result
