"""BatchNorm for clients that share one model.

In training a layer normalises by its client's own batch and leaves the batch's statistics for `collect`; it changes no
buffer, so that clients can be run in any order or all at once under `vmap`. The running statistics, which are
used in evaluation, are one flat vector (s,) that the server moves by what the clients left.

Example:
    >>> model = convert(nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)))
    >>> running = read(model)
    >>> rows = []
    >>> for client in range(3):
    ...     _ = model(torch.randn(8, 1, 5, 5))
    ...     rows.append(collect(model))
    >>> running = update(running, torch.stack(rows), "median")
    >>> apply(model, running)
    >>> running.shape
    torch.Size([8])
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

UPDATES = ("mean", "median")
"""How clients' statistics can move the running ones; see `update`."""


class ClientBatchNorm(_BatchNorm):
    """BatchNorm of any number of dimensions that shows its batch statistics and never writes its buffers.

    `statistics` holds (2C,) after a call in training: the batch's mean and unbiased variance. State dicts are those of
    torch's layers.
    """

    statistics: Tensor | None = None

    @property
    def by_batch(self) -> bool:
        """Whether it normalises by the batch, as in training, and in evaluation too if it keeps nothing else."""
        return self.training or self.running_mean is None

    def forward(self, x: Tensor) -> Tensor:
        if not self.by_batch:
            return functional.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        count = x.numel() // x.shape[1]
        if count < 2:
            raise ValueError(f"a batch for BatchNorm must have more than one value per channel, got {tuple(x.shape)}")
        # The kernel hands out the mean and 1 / sqrt(variance + eps) it worked with, which saves a second pass.
        output, mean, inverse = torch.native_batch_norm(
            x, self.weight, self.bias, None, None, training=True, momentum=0.0, eps=self.eps
        )
        if self.running_mean is not None:
            variance = (inverse.detach().pow(-2) - self.eps).clamp_min(0) * (count / (count - 1))
            self.statistics = torch.cat([mean.detach(), variance])
        return output

    def _check_input_dim(self, x: Tensor) -> None:
        """Any (N, C, ...) will do: the layer this one replaces was chosen by the model's author."""

    def __getstate__(self) -> dict[str, Any]:
        # A statistic of a vmap that has ended cannot be copied or stored, and is of no use to a copy.
        return {**self.__dict__, "statistics": None}


def convert(model: nn.Module) -> nn.Module:
    """Replace every BatchNorm of a model (1d, 2d, 3d, Sync) in place; parameters and buffers stay the same objects.

    Returns:
        The model; a new layer if the model is itself a BatchNorm.

    Example:
        >>> type(convert(nn.Sequential(nn.BatchNorm1d(3)))[0]).__name__
        'ClientBatchNorm'
    """
    return _convert(model, {})


def _convert(module: nn.Module, done: dict[nn.Module, nn.Module]) -> nn.Module:
    if module in done:  # a layer used in two places stays one layer
        return done[module]
    done[module] = module
    if isinstance(module, _BatchNorm) and not isinstance(module, ClientBatchNorm):
        done[module] = _replace(module)
    else:
        # Not named_children, which names a layer used in two places of one module only once.
        for name, child in module._modules.items():
            if child is not None:
                module._modules[name] = _convert(child, done)
    return done[module]


def _replace(layer: _BatchNorm) -> ClientBatchNorm:
    if type(layer).forward not in (_BatchNorm.forward, nn.SyncBatchNorm.forward):
        raise TypeError(
            f"{type(layer).__name__} has a forward of its own, so it cannot be converted to batch statistics"
        )
    if nn.parameter.is_lazy(layer.weight):
        raise ValueError("a lazy BatchNorm has no shape yet: call the model on a batch first")
    new = ClientBatchNorm(layer.num_features, layer.eps, layer.momentum, layer.affine, layer.track_running_stats)
    new._parameters = layer._parameters
    new._buffers = layer._buffers
    new.train(layer.training)
    return new


def layers(model: nn.Module) -> dict[str, ClientBatchNorm]:
    """The converted layers that keep running statistics, by name, in the order of the flat vector."""
    found = {n: m for n, m in model.named_modules() if isinstance(m, ClientBatchNorm)}
    return {name: layer for name, layer in found.items() if layer.running_mean is not None}


def collect(model: nn.Module) -> Tensor:
    """Take the statistics of the last batch: (s,), each layer's mean and unbiased variance, detached.

    Call it right after the forward pass, inside the function given to `vmap`, and return it beside the loss. A model
    without BatchNorm gives (0,).

    Example:
        >>> model = convert(nn.Sequential(nn.BatchNorm1d(1)))
        >>> _ = model(torch.tensor([[1.0], [3.0]]))
        >>> [round(v, 3) for v in collect(model).tolist()]
        [2.0, 2.0]
    """
    taken = []
    for name, layer in layers(model).items():
        if layer.statistics is None:
            raise RuntimeError(
                f"BatchNorm layer {name!r} has seen no batch since the last collect, or was in evaluation"
            )
        taken.append(layer.statistics)
        layer.statistics = None
    return torch.cat(taken) if taken else _nothing(model)


def read(model: nn.Module) -> Tensor:
    """A copy of the running statistics: (s,), in the order of `collect`."""
    parts = [part for layer in layers(model).values() for part in _buffers(layer)]
    return torch.cat(parts) if parts else _nothing(model)


def read_momentum(model: nn.Module) -> float | Tensor:
    """How fast the running statistics move: the layers' own momentum, as one number or one for each statistic (s,).

    >>> read_momentum(convert(nn.Sequential(nn.BatchNorm1d(1, momentum=0.2), nn.BatchNorm1d(1, momentum=0.2))))
    0.2
    """
    found: list[tuple[float, Tensor]] = []
    for name, layer in layers(model).items():
        if layer.momentum is None:
            raise ValueError(
                f"BatchNorm layer {name!r} has momentum=None, an average over all batches; give it a number"
            )
        found += [(layer.momentum, part) for part in _buffers(layer)]
    if len({momentum for momentum, _ in found}) < 2:
        return found[0][0] if found else 0.1
    return torch.cat([torch.full_like(part, momentum) for momentum, part in found])


@torch.no_grad()
def apply(model: nn.Module, running: Tensor) -> None:
    """Write running statistics (s,) into the model's buffers, for evaluation."""
    parts = [part for layer in layers(model).values() for part in _buffers(layer)]
    s = sum(part.numel() for part in parts)
    if running.shape != (s,):
        raise ValueError(
            f"running statistics must be s={s} numbers as in the BatchNorm layers, got shape {tuple(running.shape)}"
        )
    for part, values in zip(parts, torch.split(running, [part.numel() for part in parts]), strict=True):
        part.copy_(values)


def update(running: Tensor, rows: Tensor, how: str = "mean", momentum: float | Tensor = 0.1) -> Tensor:
    """The running statistics (s,) after a round in which clients left theirs: (n, s), one row per client. A new tensor.

    Args:
        running: as they were before.
        rows: one row per client; only the honest ones for `mean`, which believes everyone: for experiments that
            know them.
        how: `mean`: one step towards the mean over the rows. `median`: one step towards the median, coordinate by
            coordinate, the midpoint for even n, which fewer than half of the rows cannot move out of the others'
            range, not even with NaN.
        momentum: the length of a step, or of each statistic (s,).

    Example:
        >>> update(torch.tensor([1.0]), torch.tensor([[2.0], [3.0]]), momentum=0.5)
        tensor([1.7500])
        >>> update(torch.tensor([1.0]), torch.tensor([[1.0], [2.0], [float("nan")]]), "median", momentum=0.5)
        tensor([1.5000])
    """
    n = len(rows)
    if how == "mean":
        return running.lerp(rows.mean(0), momentum)
    if how == "median":
        ordered = rows.sort(dim=0).values  # NaN sorts last: the largest of all outliers
        return running.lerp(ordered[(n - 1) // 2] / 2 + ordered[n // 2] / 2, momentum)
    raise ValueError(f"how must be {' or '.join(UPDATES)}, got {how!r}")


def _nothing(model: nn.Module) -> Tensor:
    """(0,) where the model is, so that nobody has to treat models without BatchNorm apart."""
    first = next(model.parameters(), None)
    return torch.empty(0) if first is None else first.detach().new_empty(0)


def _buffers(layer: ClientBatchNorm) -> tuple[Tensor, Tensor]:
    assert layer.running_mean is not None
    assert layer.running_var is not None
    return layer.running_mean, layer.running_var
