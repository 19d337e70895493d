"""BatchNorm of one dense batch by the statistics of each client's own samples, and GroupNorm by each sample's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

Forward = tuple[Tensor, Tensor, Tensor, Tensor]
Backward = tuple[Tensor, Tensor, Tensor]


class Norm(Protocol):
    """Both ways; weight and bias are (C,), mean and inverse (clients, C), gradients of weight and bias (clients, C)."""

    def forward(self, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, clients: int) -> Forward:
        """Output, mean, 1 / sqrt(variance + eps), and statistics (clients, 2C): mean and unbiased variance."""

    def backward(
        self, g: Tensor, x: Tensor, mean: Tensor, inverse: Tensor, weight: Tensor | None, eps: float
    ) -> Backward:
        """The gradients with respect to x, weight and bias."""


def choose(x: Tensor, *, fused: bool) -> Norm:
    """Whichever is fastest where x lies."""
    last = x.ndim == 4 and x.is_contiguous(memory_format=torch.channels_last)
    if fused and last and x.dtype != torch.float64 and x.numel() < 2**31:
        from robagg.training.gradients.triton.norm import Fused

        fused_norm: Norm = Fused()
        return fused_norm
    return Whole()


class Whole:
    """All clients at once in plain torch, whatever the layout."""

    def forward(self, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, clients: int) -> Forward:
        parts, over = _parts(x, clients)
        # Half precision is too coarse for sums over thousands of values.
        variance, mean = torch.var_mean(parts, over, correction=0, keepdim=True)
        inverse = torch.rsqrt(variance + eps)
        scale = inverse if weight is None else inverse * _channels(weight, parts)
        shift = -mean * scale if bias is None else torch.addcmul(_channels(bias, parts), mean, scale, value=-1)
        output = torch.addcmul(shift, parts, scale).flatten(0, 1).to(x.dtype)
        count = x.numel() // mean.numel()
        unbiased = variance * (count / (count - 1))
        flat = [t.reshape(clients, -1) for t in (mean, inverse, unbiased)]
        return output, flat[0], flat[1], torch.cat([flat[0], flat[2]], 1)

    def backward(
        self, g: Tensor, x: Tensor, mean: Tensor, inverse: Tensor, weight: Tensor | None, eps: float
    ) -> Backward:
        clients = len(mean)
        (own, over), (parts, _) = _parts(g, clients), _parts(x, clients)
        shape = [clients, 1, -1, *(1,) * (x.ndim - 2)]
        center, rate = mean.view(shape), inverse.view(shape)
        by_bias = own.sum(over, keepdim=True)
        by_weight = ((own * parts).sum(over, keepdim=True) - center * by_bias) * rate
        scale = rate if weight is None else rate * _channels(weight, parts)
        share = scale * (mean.numel() / x.numel())
        slope = -share * rate * by_weight
        rest = -share * by_bias - slope * center
        into = torch.addcmul(torch.addcmul(rest, parts, slope), own, scale)
        return into.flatten(0, 1).to(x.dtype), by_weight.reshape(clients, -1), by_bias.reshape(clients, -1)


def _parts(x: Tensor, clients: int) -> tuple[Tensor, list[int]]:
    """(clients, b, C, ...) and the dimensions a client's statistics are taken over."""
    x = x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
    return x.view(clients, -1, *x.shape[1:]), [1, *range(3, x.ndim + 1)]


def _channels(values: Tensor, parts: Tensor) -> Tensor:
    return values.view(-1, *(1,) * (parts.ndim - 3))


@dataclass(frozen=True)
class Groups:
    """GroupNorm in plain torch, whatever the layout: mean and inverse are (clients, b, groups), statistics empty."""

    groups: int

    def forward(self, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, clients: int) -> Forward:
        parts = _groups(x, self.groups)
        variance, mean = torch.var_mean(parts, (1, 3), correction=0, keepdim=True)
        inverse = torch.rsqrt(variance + eps)
        scale = inverse if weight is None else inverse * weight.view(self.groups, -1)
        shift = -mean * scale if bias is None else torch.addcmul(bias.view(self.groups, -1), mean, scale, value=-1)
        output = _images(torch.addcmul(shift, parts, scale), x)
        shape = (clients, -1, self.groups)
        return output, mean.view(shape), inverse.view(shape), mean.new_empty(clients, 0)

    def backward(
        self, g: Tensor, x: Tensor, mean: Tensor, inverse: Tensor, weight: Tensor | None, eps: float
    ) -> Backward:
        center, rate = (t.view(-1, 1, self.groups, 1) for t in (mean, inverse))
        own, normal = _groups(g, self.groups), (_groups(x, self.groups) - center) * rate
        # Each sample's sums first: of its channels they make the clients' gradients, of its groups what x needs.
        by_bias, by_weight = own.sum(1, keepdim=True), (own * normal).sum(1, keepdim=True)
        whole = 1 if weight is None else weight.view(self.groups, -1)
        count = normal[0].numel() // self.groups
        drift, slope = ((whole * by).sum(3, keepdim=True) / count for by in (by_bias, by_weight))
        into = rate * torch.addcmul(whole * own - drift, normal, slope, value=-1)
        by_weight, by_bias = (by.reshape(len(mean), -1, x.shape[1]).sum(1) for by in (by_weight, by_bias))
        return _images(into, x), by_weight, by_bias


def _groups(x: Tensor, groups: int) -> Tensor:
    """(N, places, groups, C / groups); of channels-last images without a copy."""
    x = x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
    places = x.flatten(2) if x.ndim > 2 else x.unsqueeze(2)
    return places.transpose(1, 2).reshape(len(x), -1, groups, x.shape[1] // groups)


def _images(parts: Tensor, like: Tensor) -> Tensor:
    """What `_groups` took apart, as it was."""
    return parts.flatten(2).transpose(1, 2).reshape(like.shape).to(like.dtype)
