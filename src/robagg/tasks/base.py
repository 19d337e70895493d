"""A task: data, a model for it, and how it is trained by default."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor, nn

from robagg._core.contract import Attribution, PluginError, describe
from robagg._core.registry import Named, Registry
from robagg._core.rule import Rule
from robagg.attacks.base import Attack
from robagg.data import Dataset
from robagg.models.flat import find_dtype
from robagg.splits import Split
from robagg.training import LOSSES, Federation, Metric, Settings, choose_device
from robagg.training.seeds import derive, generator


@dataclass(frozen=True)
class Task(Named, ABC):
    """What is learnt. A subclass says where the data come from, which model, and the defaults of a run."""

    n: ClassVar[int] = 20
    """Clients, where nobody says otherwise."""
    loss: ClassVar[str] = "cross_entropy"
    settings: ClassVar[Settings] = Settings()

    @abstractmethod
    def load(self, root: str | Path | None = None) -> Dataset:
        """The data set."""

    @abstractmethod
    def build(self, dataset: Dataset, seed: int) -> nn.Module:
        """The model with its initial weights, which depend on the seed alone."""

    @property
    def transform(self) -> Callable[[Tensor, torch.Generator], Tensor] | None:
        """What is done to training batches, if anything."""
        return None

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """What is measured of a trained model beside what always is: functions of (model, test), by name."""
        return {}

    @property
    def title(self) -> str:
        """How people call it."""
        return type(self).__name__


def federate(
    task: Task,
    rule: Rule,
    attack: Attack,
    split: Split,
    *,
    n: int,
    f: int,
    seed: int = 0,
    settings: Settings | None = None,
    root: str | Path | None = None,
    device: str | torch.device = "auto",
) -> tuple[Federation, Dataset]:
    """The clients of a task, each with its shard of the data, ready for their first round."""
    dataset = _load(task, root)
    if task.loss not in LOSSES:
        raise ValueError(f"the loss of {task} must be one of {', '.join(LOSSES)}, got {task.loss!r}")
    with Attribution(task, "build"):
        model = task.build(dataset, derive(seed, "weights"))
    if not isinstance(model, nn.Module):
        raise PluginError(f"{task}: build must return a torch.nn.Module, got {describe(model)}")
    dataset = _cast(dataset, find_dtype(model))
    chosen = settings or task.settings
    dataset, root_data = put_aside(dataset, chosen.root, seed)
    with Attribution(split, "split"):
        shards = split.split(dataset.train_y, n, f, generator=generator(seed, "split"))
    federation = Federation(
        model,
        [(dataset.train_x[at], dataset.train_y[at]) for at in shards],
        rule,
        attack,
        f=f,
        loss=LOSSES[task.loss],
        classes=dataset.classes,
        settings=chosen,
        augment=task.transform,
        root=root_data,
        seed=seed,
        device=choose_device(device),
    )
    return federation, dataset


def put_aside(dataset: Dataset, count: int, seed: int) -> tuple[Dataset, tuple[Tensor, Tensor] | None]:
    """The data set without so many of its training samples, drawn by the seed, and these: what the server holds."""
    if not count:
        return dataset, None
    x, y = dataset.train_x, dataset.train_y
    if count >= len(y):
        raise ValueError(f"root must leave the clients some of the {len(y)} training samples, got {count}")
    order = torch.randperm(len(y), generator=generator(seed, "root"))
    own, rest = order[:count], order[count:].sort().values
    return replace(dataset, train_x=x[rest], train_y=y[rest]), (x[own], y[own])


@lru_cache(maxsize=1)
def _load(task: Task, root: str | Path | None) -> Dataset:
    """The last data set stays in memory: the runs of a sweep share it."""
    with Attribution(task, "load"):
        dataset = task.load(root)
    if not isinstance(dataset, Dataset):
        raise PluginError(f"{task}: load must return a robagg.Dataset, got {describe(dataset)}")
    return dataset


def _cast(dataset: Dataset, dtype: torch.dtype) -> Dataset:
    """The same with floating-point inputs and labels in the model's dtype."""
    inputs = {name: getattr(dataset, name) for name in ("train_x", "test_x", "train_y", "test_y")}
    return replace(dataset, **{name: x.to(dtype) for name, x in inputs.items() if x.is_floating_point()})


tasks: Registry[Task] = Registry("task", Task, "robagg.tasks")  # type: ignore[type-abstract]
