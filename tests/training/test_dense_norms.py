"""Norms in a dense batch: each client's own gradients, as torch gives them to the client alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from robagg.models import batchnorm
from robagg.training.gradients.dense import norm as dense_norm
from training.dense_twin import agree, batches, dense, loop


@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("channels_last", [False, True])
def test_group_norm_agrees(groups: int, affine: bool, channels_last: bool) -> None:
    """Of images, of sequences and of plain vectors, with weights of its own that are not 1 and 0."""
    norms = [nn.GroupNorm(groups, 6, affine=affine) for _ in range(3)]
    model = nn.Sequential(
        nn.Conv2d(4, 6, 3),
        norms[0],
        nn.ReLU(),
        nn.Flatten(2),
        norms[1],
        nn.Flatten(),
        nn.Linear(252, 6),
        norms[2] if groups < 6 else nn.Identity(),
        nn.Linear(6, 10),
    )
    g = torch.Generator().manual_seed(1)
    for norm in norms:
        for parameter in norm.parameters():
            parameter.data.normal_(generator=g)
    x, y = batches((4, 9, 8))
    agree(model.double(), 3 * x + 5, y, channels_last=channels_last)


@pytest.mark.parametrize("frozen", ["0.weight", "1.weight", "1.bias", "0."])
def test_group_norm_used_twice_and_frozen_in_part(frozen: str) -> None:
    """With all of the convolution frozen, its images need no gradient, and the norm's weights do."""
    norm = nn.GroupNorm(2, 6)
    model = nn.Sequential(nn.Conv2d(4, 6, 3), norm, nn.ReLU(), norm, nn.Flatten(), nn.Linear(252, 10)).double()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not name.startswith(frozen))
    x, y = batches((4, 9, 8))
    agree(model, x, y)
    agree(model, x, y, channels_last=True)


def test_group_norm_in_bfloat16_is_near() -> None:
    model = nn.Sequential(nn.Conv2d(4, 6, 3), nn.GroupNorm(2, 6), nn.ReLU(), nn.Flatten(), nn.Linear(252, 10))
    x, y = batches((4, 9, 8), b=16, dtype=torch.float32)
    engine = dense(model, precision="bfloat16")
    got, _, _ = engine.run(x, y)
    assert engine.note is None
    assert got.dtype == torch.float32
    wanted = loop(model, x, y)[0]
    assert bool(((got - wanted).norm(dim=1) <= 0.03 * wanted.norm(dim=1)).all())


@pytest.mark.parametrize("size", [1.0, 1e-3])
@pytest.mark.parametrize("norm", [nn.BatchNorm2d(6), nn.GroupNorm(6, 6)])
def test_a_bias_that_a_norm_takes_away_is_no_difference(norm: nn.Module, size: float) -> None:
    """Its gradient is 0 but for rounding, which need not agree."""
    model = nn.Sequential(nn.Conv2d(4, 6, 3), norm, nn.ReLU(), nn.Flatten(), nn.Linear(252, 10))
    x, y = batches((4, 9, 8))
    engine = dense(batchnorm.convert(model.double()).train(), example=(size * x, y))
    assert engine.note is None


@pytest.mark.parametrize("shape", [(6, 5), (6, 5, 4, 3), (6, 5, 7)])
@pytest.mark.parametrize("affine", [False, True])
def test_batch_norm_at_once_is_that_by_client(shape: tuple[int, ...], affine: bool) -> None:
    x, g = torch.randn(2, *shape, dtype=torch.float64) + 3
    weight, bias = torch.randn(2, 5, dtype=torch.float64) if affine else (None, None)
    output, mean, inverse, statistics = dense_norm.Whole().forward(x, weight, bias, 1e-5, 3)
    into, by_weight, by_bias = dense_norm.Whole().backward(g, x, mean, inverse, weight, 1e-5)
    for i, (own, gradient) in enumerate(zip(x.chunk(3), g.chunk(3), strict=True)):
        own.requires_grad_()
        ones = torch.ones(5, dtype=torch.float64)
        scale, shift = ones.clone() if weight is None else weight.clone(), 0 * ones if bias is None else bias.clone()
        normal = functional.batch_norm(own, None, None, scale.requires_grad_(), shift.requires_grad_(), training=True)
        wanted = torch.autograd.grad(normal, (own, scale, shift), gradient)
        over = [0, *range(2, x.ndim)]
        for a, b in zip(
            (output.chunk(3)[i], statistics[i], into.chunk(3)[i], by_weight[i], by_bias[i]),
            (normal, torch.cat([own.mean(over), own.var(over)]), *wanted),
            strict=True,
        ):
            torch.testing.assert_close(a, b)
