"""What is measured of a model beside its accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from robagg._core.contract import Attribution, PluginError, describe
from robagg.models import batchnorm
from robagg.training.evaluate import Score
from robagg.training.federation import Federation

Value: TypeAlias = float | list[float]
"""What a metric gives: a number, or one for each class, client, ...; NaN where there is none."""
Metric = Callable[[nn.Module, tuple[Tensor, Tensor] | None], Any]
"""A function of the model, in evaluation mode, and the test set (x, y) on its device; None: there is no test set."""
BUILT_IN = ("loss", "class_accuracy", "worst_client", "attack_success")


def measure(
    federation: Federation,
    test: tuple[Tensor, Tensor] | None,
    found: Score | None,
    metrics: Mapping[str, Metric],
    notes: list[str],
) -> dict[str, Value]:
    """What is built in, as far as there are samples for it, then what a user's own functions give.

    - loss: on the test set.
    - class_accuracy: percent of the test labels of each class.
    - worst_client: the lowest accuracy over the honest clients, each on its own data.
    - attack_success: percent of the labels that the attack's `goal` wants.

    Args:
        found: what the model makes of the test set.
        metrics: a user's own, by name.
        notes: takes a sentence on what could not be measured.
    """
    values: dict[str, Value] = {}
    if found is not None:
        if not math.isnan(found.loss):
            values["loss"] = found.loss
        if test is not None and found.right is not None:
            values["class_accuracy"] = _part_by_class(found.right.cpu(), test[1].cpu(), federation.classes)
            values["worst_client"] = _find_worst(federation, notes)
            goal = read_goal(federation, test)
            if goal is not None and (success := federation.score(goal).accuracy) is not None:
                values["attack_success"] = success
    return values | measure_own(federation, test, metrics)


def measure_own(
    federation: Federation, test: tuple[Tensor, Tensor] | None, metrics: Mapping[str, Metric]
) -> dict[str, Value]:
    """What a user's own functions give."""
    if not metrics:
        return {}
    with at_rest(federation) as model:
        return {name: _read_value(name, metric(model, test)) for name, metric in metrics.items()}


@contextmanager
def at_rest(federation: Federation) -> Iterator[nn.Module]:
    """Inside, the model is in evaluation mode, for a user's function; then all is as before, torch's generators too."""
    model, devices = federation.model, [federation.device] if federation.device.type == "cuda" else []
    batchnorm.apply(model, federation.running)
    model.eval()
    with torch.no_grad(), torch.random.fork_rng(devices):
        yield model
    model.train()


def check_metrics(metrics: Mapping[str, Metric]) -> None:
    """Refuse what are no functions by name."""
    if not isinstance(metrics, Mapping):
        raise TypeError(f"metrics must be functions of (model, test) by name, got {metrics!r}")
    for name, metric in metrics.items():
        if not isinstance(name, str) or not callable(metric):
            raise TypeError(f"metrics must be functions of (model, test) by name, got {metric!r} for {name!r}")
        if name in BUILT_IN:
            raise ValueError(f"a metric must have a name other than {', '.join(BUILT_IN)}, got {name!r}")


def read_goal(federation: Federation, test: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor] | None:
    """What the attack wants of the test set; None: nothing, or no sample is left for it."""
    attack = federation.attack
    with Attribution(attack, "goal"):
        goal = attack.goal(*test, classes=federation.classes)
    if goal is None:
        return None
    pair = isinstance(goal, tuple) and len(goal) == 2 and all(isinstance(part, Tensor) for part in goal)
    if not pair or len(goal[0]) != len(goal[1]):
        got = f"{len(goal[0])} and {len(goal[1])}" if pair else describe(goal)
        raise PluginError(f"{attack}: goal must return samples and a label for each as tensors, or None, got {got}")
    x, y = (part.to(federation.device) for part in goal)
    return (x, y) if len(y) else None


def check_goal(federation: Federation, test: tuple[Tensor, Tensor]) -> None:
    """Refuse a goal that cannot be scored, by its first two samples."""
    goal = read_goal(federation, test)
    if goal is None:
        return
    x, y = (part[:2] for part in goal)
    try:
        with at_rest(federation):
            federation.score((x, y))
    except Exception as error:
        shapes = f"samples {tuple(goal[0].shape)} and labels {tuple(goal[1].shape)}"
        raise PluginError(
            f"{federation.attack}: goal must return samples that the model takes, and labels of its classes, "
            f"got {shapes}: {error}"
        ) from error


def _part_by_class(right: Tensor, y: Tensor, classes: int) -> list[float]:
    """Percent of each class; NaN for one that is not there."""
    parts = [right[y == label] for label in range(classes)]
    return [100 * int(part.sum()) / len(part) if len(part) else math.nan for part in parts]


def _find_worst(federation: Federation, notes: list[str]) -> float:
    """The lowest accuracy over the honest clients; what cannot be measured of one does not end a run that is done."""
    found, left_out = list[float | None](), list[str]()
    for i in range(federation.h):
        try:
            found.append(federation.score(federation.shards.of(i)).accuracy)
        except Exception as error:
            left_out.append(f"client {i}, whose accuracy cannot be measured: {error}")
    if left_out:
        more = f" (and {len(left_out) - 1} more)" if len(left_out) > 1 else ""
        notes.append(f"worst_client leaves out {left_out[0]}{more}")
    return min((value for value in found if value is not None), default=math.nan)


def _read_value(name: str, given: Any) -> Value:
    value = given.tolist() if hasattr(given, "tolist") else given  # of a tensor, an array or a number of NumPy's
    flat = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if not all(isinstance(number, int | float) for number in flat):
        raise TypeError(f"the metric {name!r} must give a number or a list of numbers, got {describe(given)}")
    numbers = [float(number) for number in flat]
    return numbers if isinstance(value, Sequence) else numbers[0]
