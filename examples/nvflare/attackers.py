"""What hostile sites send. Each takes the model it got and what an honest site would send now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nvflare.client as flare
import torch

Numbers = dict[str, torch.Tensor]
Attack = Callable[[Numbers, Numbers, dict[str, Any]], flare.FLModel]


def push(sent: Numbers, trained: Numbers, factor: float) -> Numbers:
    """The model, moved by a factor times the honest update."""
    return {name: w + factor * (trained[name] - w) for name, w in sent.items()}


def sign_flip(sent: Numbers, trained: Numbers, meta: dict[str, Any]) -> flare.FLModel:
    """The opposite of its honest update."""
    return flare.FLModel(params=push(sent, trained, -1.0), meta=meta)


def ipm(sent: Numbers, trained: Numbers, meta: dict[str, Any]) -> flare.FLModel:
    """Inner product manipulation: far back along the mean update, of which its own is the best guess."""
    return flare.FLModel(params=push(sent, trained, -10.0), meta=meta)


def nan(sent: Numbers, trained: Numbers, meta: dict[str, Any]) -> flare.FLModel:
    """Not a number, everywhere."""
    return flare.FLModel(params={name: w * float("nan") for name, w in trained.items()}, meta=meta)


def wrong_shape(sent: Numbers, trained: Numbers, meta: dict[str, Any]) -> flare.FLModel:
    """Arrays of other shapes."""
    return flare.FLModel(params={name: torch.zeros(3, *w.shape) for name, w in trained.items()}, meta=meta)


def extra_keys(sent: Numbers, trained: Numbers, meta: dict[str, Any]) -> flare.FLModel:
    """An array that nobody asked for."""
    return flare.FLModel(params={**trained, "backdoor": torch.ones(4)}, meta=meta)


def many_examples(sent: Numbers, trained: Numbers, meta: dict[str, Any]) -> flare.FLModel:
    """The opposite of its update, with the claim to have taken 10^12 steps."""
    return flare.FLModel(params=push(sent, trained, -1.0), meta=meta | {"NUM_STEPS_CURRENT_ROUND": 10**12})


def error(sent: Numbers, trained: Numbers, meta: dict[str, Any]) -> flare.FLModel:
    """An exception: the server gets an error at once."""
    raise RuntimeError("this site fails on purpose")


ATTACKS: dict[str, Attack] = {
    "sign-flip": sign_flip,
    "ipm": ipm,
    "nan": nan,
    "wrong-shape": wrong_shape,
    "extra-keys": extra_keys,
    "many-examples": many_examples,
    "error": error,
}
