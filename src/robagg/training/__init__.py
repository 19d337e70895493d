"""Federated training under attack: gradients of all clients on one shared model, the attack, the rule, the step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from robagg._core.rule import Rule
from robagg._core.rule import parse as parse_rule
from robagg.attacks import parse as parse_attack
from robagg.attacks.base import Attack
from robagg.models.flat import find_dtype
from robagg.training.federation import Clients, Federation
from robagg.training.losses import LOSSES, Loss, is_of_logits
from robagg.training.metrics import Metric
from robagg.training.settings import Settings
from robagg.training.trace import Trace, unpack_weights
from robagg.training.trainer import Callback, Loop, Progress, Result


def train(
    model: nn.Module,
    clients: Sequence[Any],
    rule: Rule | str,
    attack: Attack | str = "none",
    *,
    f: int = 0,
    test: tuple[Any, Any] | None = None,
    root: tuple[Any, Any] | None = None,
    loss: str | Loss = "cross_entropy",
    classes: int | None = None,
    augment: Callable[[Tensor, torch.Generator], Tensor] | None = None,
    seed: int = 0,
    device: str | torch.device = "auto",
    progress: Progress | None = None,
    metrics: Mapping[str, Metric] | None = None,
    callback: Callback | None = None,
    **settings: Any,
) -> Result:
    """Train a model over clients of which the last f are Byzantine.

    Args:
        model: any `nn.Module`; it is copied, and the trained copy is in the result.
        clients: each client's (x, y), as tensors or arrays, or its Dataset, or a DataLoader, which is read once; a
            loader's own batches, order and changes of samples from pass to pass do not count.
        rule: a rule or its text; a text that names no f gets this function's.
        attack: what the last f clients do, or its text.
        f: how many clients are Byzantine.
        test: (x, y) for the accuracy and the loss.
        root: (x, y), or a Dataset or a DataLoader: clean data that the server holds. In each round it computes what an
            honest client with them would send, for rules that measure to a row that is trusted (FLTrust, MoNNA).
        loss: "cross_entropy" or "nll" of scores; "bce" of one logit for each label 0 or 1; "mse", "l1" or "huber" of
            measured values, which are floating labels and have no accuracy, but `Result.losses`; or a function of
            (output, y), which several threads may call at a time.
        classes: number of labels; None: one more than the largest label.
        augment: a function of (batch, generator).
        seed: sets the batches, dropout and the attack, each through its own generator.
        device: "auto", "cpu", "cuda".
        progress: called after each round (rounds done, rounds in all, the last accuracy).
        metrics: your own measures by name, each a function of the model, in evaluation mode, and the test set (or None)
            that gives a number or a list of numbers. They are called once before the first round, so that what cannot
            be measured raises then, and after the last. `Result.metrics` has them beside those that are built in.
        callback: called after each round with its number from 0, the model, in evaluation mode, and the verdict on all
            clients. On a GPU rounds take longer with one.
        settings: the fields of `Settings`: rounds, batch, momentum, rate, schedule, local_steps, share, ...

    Example:
        >>> x, y = torch.randn(100, 4), torch.randint(2, (100,))
        >>> clients = [(x[i::5], y[i::5]) for i in range(5)]
        >>> result = train(nn.Linear(4, 2), clients, "tq", "ipm", f=1, test=(x, y), rounds=5)
        >>> 0 <= result.accuracy <= 100
        True
    """
    dtype = find_dtype(model)
    data = [_read_client(f"client {i}", client, dtype) for i, client in enumerate(clients)]
    if not data:
        raise ValueError("clients must be one or more, got none")
    if isinstance(loss, str) and loss not in LOSSES:
        raise ValueError(f"loss must be one of {', '.join(LOSSES)} or a function, got {loss!r}")
    chosen = parse_attack(attack) if isinstance(attack, str) else attack
    if not isinstance(chosen, Attack):
        raise TypeError(f"attack must be an Attack or its text, got {attack!r}")
    chosen_loss = LOSSES[loss] if isinstance(loss, str) else loss
    if of_logits := is_of_logits(chosen_loss):
        _check_logits(data)
    largest = [int(y.max()) for _, y in data if y.numel() and not y.is_floating_point()]
    federation = Federation(
        model,
        data,
        parse_rule(rule, f=f),
        chosen,
        f=f,
        loss=chosen_loss,
        classes=classes or (2 if of_logits else 1 + max(largest, default=0)),
        settings=Settings().change(settings),
        augment=augment,
        root=None if root is None else _read_client("root", root, dtype),
        seed=seed,
        device=choose_device(device),
    )
    held = None if test is None else (_read(test[0], dtype), _read_labels(test[1], dtype))
    return Loop(federation, held, progress=progress, metrics=metrics, callback=callback).run()


def _check_logits(data: Clients) -> None:
    for i, (_, y) in enumerate(data):
        if y.numel() and not 0 <= float(y.min()) <= float(y.max()) <= 1:
            got = f"{float(y.min()):g} to {float(y.max()):g}"
            raise ValueError(f"labels of client {i} must be from 0 to 1, with one logit for each, got {got}")


def _read_client(name: str, client: Any, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """What a client holds, as tensors: a pair, or all samples of a data set or of what a loader gives in one pass."""
    if isinstance(client, DataLoader):
        x, y = _join(torch.cat, [*client])
    elif isinstance(client, Dataset):
        x, y = _join(torch.stack, [client[k] for k in range(len(client))])  # type: ignore[arg-type]
    elif isinstance(client, tuple | list) and len(client) == 2:
        x, y = client
    else:
        got = f"{len(client)} parts" if isinstance(client, tuple | list) else type(client).__name__
        raise ValueError(f"{name} must be (x, y), a Dataset or a DataLoader, got {got}")
    return _read(x, dtype), _read_labels(y, dtype)


def _join(join: Callable[[list[Tensor]], Tensor], parts: list[Any]) -> tuple[Tensor, Tensor]:
    """Samples or batches (x, y) as one pair."""
    if not parts:
        return torch.empty(0), torch.empty(0)
    x, y = (join([torch.as_tensor(part[k]) for part in parts]) for k in (0, 1))
    return x, y


def _read(values: Any, dtype: torch.dtype) -> Tensor:
    """A tensor of what a client holds; floating-point numbers in the model's dtype."""
    tensor = torch.as_tensor(values)
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


def _read_labels(values: Any, dtype: torch.dtype) -> Tensor:
    tensor = _read(values, dtype)
    return tensor.long() if tensor.dtype == torch.bool else tensor


def choose_device(device: str | torch.device) -> torch.device:
    """The device by name; "auto" is a GPU where there is one."""
    if str(device) == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise ValueError(f"device must be auto, cpu, cuda or one of several, such as cuda:1, got {device!r}") from error
    if chosen.type not in ("cpu", "cuda"):
        raise ValueError(f"device must be cpu or cuda for training, got {device!r}")
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device must be cpu where torch finds no GPU, as here, got {device}")
    return chosen


__all__ = [
    "LOSSES",
    "Callback",
    "Clients",
    "Federation",
    "Loop",
    "Metric",
    "Progress",
    "Result",
    "Settings",
    "Trace",
    "choose_device",
    "train",
    "unpack_weights",
]
