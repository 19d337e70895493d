"""Which client's data a model or a loss cannot take."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from robagg.training.losses import Loss


def name_client(
    model: nn.Module, loss: Loss, clients: Sequence[int], x: Tensor, y: Tensor, error: Exception
) -> Exception:
    """An error of the gradients of all clients, as one that names the client whose batch alone raises it.

    On a GPU it is the same error: after a failed kernel the device cannot be asked any more.
    """
    if x.device.type != "cpu":
        return error
    for i, samples, labels in zip(clients, x, y, strict=True):
        try:
            value = loss(model(samples), labels)
        except Exception as found:
            return ValueError(f"the loss of client {i} cannot be computed: {type(found).__name__}: {found}")
        if not isinstance(value, Tensor) or value.numel() != 1:
            got = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
            return ValueError(f"the loss of a batch must be one number, got {got}")
    return error
