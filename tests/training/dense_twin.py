"""The dense batch beside the loop over clients, for the tests of both."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from robagg.models import batchnorm
from robagg.models.flat import Flat
from robagg.training import Federation
from robagg.training.gradients.dense.engine import Dense
from robagg.training.gradients.looped import Looped, Mapped, Work

WORK = Work(functional.cross_entropy)


def still(model: nn.Module) -> nn.Module:
    """Without dropout, BatchNorm converted."""
    for module in model.modules():
        if isinstance(module, nn.Dropout | nn.Dropout2d):
            module.p = 0.0
    return batchnorm.convert(model).train()


def batches(
    shape: tuple[int, ...], clients: int = 3, b: int = 4, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    return torch.randn(clients, b, *shape, dtype=dtype, generator=g), torch.randint(10, (clients, b), generator=g)


def loop(model: nn.Module, x: Tensor, y: Tensor, work: Work = WORK) -> tuple[Tensor, Tensor, Tensor]:
    flat = Flat(model)
    rows = torch.empty(len(x), flat.d, dtype=flat.parameters[0].dtype)
    losses, statistics = Looped(model, flat, flat.flatten(), work).run(x, y, lambda i, g: rows[i].copy_(flat.join(g)))
    return rows, losses, statistics


def dense(model: nn.Module, *, channels_last: bool | None = None, **options: object) -> Dense:
    """The dense batch, with the ways of an accelerator where they are asked for."""
    flat = Flat(model)
    engine = Dense(model, flat, flat.flatten(), WORK, **options)
    engine.channels_last = engine.channels_last if channels_last is None else channels_last
    return engine


def compute_by(name: str, federation: Federation) -> Federation:
    """The same federation, its gradients computed in the way of that name."""
    engine = {"loop": Looped, "vmap": Mapped, "dense": Dense}[name]
    federation.gradients = engine(federation.model, federation.flat, federation.w, federation.gradients.work)
    return federation


def agree(model: nn.Module, x: Tensor, y: Tensor, rtol: float = 1e-9, **options: object) -> Dense:
    wanted, engine = loop(model, x, y), dense(model, **options)
    got = engine.run(x, y)
    assert engine.note is None
    for a, b in zip(got, wanted, strict=True):
        assert a.shape == b.shape
        assert bool(((a - b).flatten(1 if b.ndim > 1 else 0).norm(dim=-1) <= rtol * b.norm(dim=-1)).all())
    return engine
