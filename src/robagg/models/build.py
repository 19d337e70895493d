"""Builds a model by name, with initial weights that depend on the seed alone."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from robagg._core.registry import fold, unknown
from robagg.models.cnn import CNN
from robagg.models.logistic import Logistic
from robagg.models.mlp import MLP
from robagg.models.resnet20 import ResNet20

MODELS: dict[str, Callable[..., nn.Module]] = {"cnn": CNN, "logistic": Logistic, "mlp": MLP, "resnet20": ResNet20}


def build(
    name: str, classes: int = 10, shape: tuple[int, ...] | None = None, *, seed: int | torch.Generator = 0
) -> nn.Module:
    """Build a model on the CPU; the global random state is as before.

    Args:
        name: cnn, resnet20, mlp or logistic; case, `-` and `_` do not matter.
        classes: number of labels.
        shape: of one sample, (C, H, W); None means the shape the model was made for.
        seed: an integer, or a generator from which one is drawn.

    Example:
        >>> model = build("cnn", seed=0)
        >>> sum(p.numel() for p in model.parameters())
        1199882
    """
    made = MODELS[find_model(name)]
    if isinstance(seed, torch.Generator):
        seed = int(torch.randint(2**63 - 1, (1,), generator=seed, device=seed.device).item())
    given = {} if shape is None else {"shape": tuple(shape)}
    # On the CPU whatever the default device, and seeding the CPU's generator alone: the same weights for every
    # device, and not a draw taken from anyone else's stream.
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.default_generator.manual_seed(seed)
        return made(classes=classes, **given)


def find_model(name: str) -> str:
    """The name of a model as `MODELS` has it.

    >>> find_model("ResNet-20")
    'resnet20'
    """
    known = {fold(listed): listed for listed in MODELS}
    if not isinstance(name, str) or fold(name) not in known:
        raise ValueError(unknown("model", str(name), sorted(MODELS), known))
    return known[fold(name)]
