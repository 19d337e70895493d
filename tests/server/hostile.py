"""Everything a hostile or broken client may send, as arrays by name and metrics: one table for every framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Numbers = dict[str, np.ndarray]
Sent = tuple[Any, dict[str, Any]]
"""Arrays by name, and metrics, whose "num-examples" is the size that the client claims."""
Hostile = Callable[[Numbers, Numbers, dict[str, Any]], Sent]
"""From the model that was sent, what an honest client would answer, and its metrics."""

SHAPES = {"layer.weight": (7, 5), "layer.bias": (7,), "head.weight": (3, 7)}
SIZE = "num-examples"


def draw_model(seed: int = 0, shapes: Mapping[str, tuple[int, ...]] = SHAPES) -> Numbers:
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}


def draw_update(model: Mapping[str, np.ndarray], seed: int, size: float = 0.1) -> Numbers:
    """The model after an honest client's training: a common step and its own noise."""
    common, own = np.random.default_rng(7), np.random.default_rng(1000 + seed)
    return {
        name: (w + size * (common.standard_normal(w.shape) + 0.3 * own.standard_normal(w.shape))).astype(w.dtype)
        for name, w in model.items()
    }


def flatten(numbers: Mapping[str, Any]) -> np.ndarray:
    return np.concatenate([np.asarray(value, np.float64).ravel() for value in numbers.values()])


def push(sent: Numbers, trained: Numbers, factor: float) -> Numbers:
    """The model, moved by a factor times the honest update."""
    return {name: np.asarray(w + factor * (trained[name] - w), w.dtype) for name, w in sent.items()}


def put(value: Any) -> Hostile:
    """The honest answer with another bias."""
    return lambda sent, trained, metrics: ({**trained, "layer.bias": value}, metrics)


def fill(value: Any, dtype: Any = np.float32) -> Hostile:
    """The same number everywhere."""
    return lambda sent, trained, metrics: ({k: np.full(v.shape, value, dtype) for k, v in trained.items()}, metrics)


def claim(value: Any) -> Hostile:
    """The opposite of the honest update, with some number of examples."""
    return lambda sent, trained, metrics: (push(sent, trained, -1.0), {**metrics, SIZE: value})


BROKEN: dict[str, Hostile] = {
    "nan": fill(np.nan),
    "one-inf": put(np.array([0, 0, np.inf, 0, 0, 0, 0], np.float32)),
    "wrong-shape": lambda s, t, m: ({k: np.zeros((3, *v.shape), np.float32) for k, v in t.items()}, m),
    "extra-keys": lambda s, t, m: ({**t, "backdoor": np.ones(4, np.float32)}, m),
    "missing-key": lambda s, t, m: ({k: v for k, v in t.items() if k != "layer.bias"}, m),
    "empty-arrays": lambda s, t, m: ({}, m),
    "coloured-name": lambda s, t, m: ({**t, "\x1b[2J\u202ex": t["layer.bias"]}, m),
    "complex": lambda s, t, m: ({k: v + np.complex64(100j) for k, v in t.items()}, m),
    "strings": fill("hello", "<U5"),
    "objects": put(np.array([None] * 7, dtype=object)),
    "records": put(np.zeros(7, "f4,f4")),
    "long-double": put(np.zeros(7, np.longdouble)),
    "beyond-float32": put(np.full(7, 1e300)),
    "nan-examples": claim(float("nan")),
    "infinite-examples": claim(float("inf")),
    "negative-examples": claim(-5),
    "list-of-examples": claim([1, 2]),
    "unwritable-examples": claim(10**400),
}
"""Replies that cannot be used: they must be dropped with a reason."""

FAR: dict[str, Hostile] = {
    "ipm": lambda s, t, m: (push(s, t, -10.0), m),
    "sign-flip": lambda s, t, m: (push(s, t, -1.0), m),
    "many-examples": claim(10**12),
    "zero-examples": claim(0),
    "huge": fill(3e38),
    "integers": put(np.full(7, 2**62)),
    "booleans": put(np.ones(7, bool)),
    "zeros": fill(0.0),
}
"""Replies that can be read but lie far from the honest ones: the rule must cope."""
