"""What hostile clients send. Each takes the model it got and what an honest client would send now."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
from flwr.app import Array, ArrayRecord, MetricRecord, RecordDict

Attack = Callable[[ArrayRecord, ArrayRecord, MetricRecord], RecordDict]


def wrap(arrays: dict[str, Array] | ArrayRecord, metrics: MetricRecord) -> RecordDict:
    """A reply as the server expects it."""
    record = arrays if isinstance(arrays, ArrayRecord) else ArrayRecord(arrays)
    return RecordDict({"arrays": record, "metrics": metrics})


def push(sent: ArrayRecord, trained: ArrayRecord, factor: float) -> dict[str, Array]:
    """The model, moved by a factor times the honest update."""
    pairs = {name: (sent[name].numpy(), trained[name].numpy()) for name in sent}
    return {name: Array(np.asarray(w + factor * (x - w), dtype=w.dtype)) for name, (w, x) in pairs.items()}


def sign_flip(sent: ArrayRecord, trained: ArrayRecord, metrics: MetricRecord) -> RecordDict:
    """The opposite of its honest update."""
    return wrap(push(sent, trained, -1.0), metrics)


def ipm(sent: ArrayRecord, trained: ArrayRecord, metrics: MetricRecord) -> RecordDict:
    """Inner product manipulation: far back along the mean update, of which its own is the best guess."""
    return wrap(push(sent, trained, -10.0), metrics)


def nan(sent: ArrayRecord, trained: ArrayRecord, metrics: MetricRecord) -> RecordDict:
    """Not a number, everywhere."""
    return wrap({name: Array(np.full(a.shape, np.nan, np.float32)) for name, a in trained.items()}, metrics)


def wrong_shape(sent: ArrayRecord, trained: ArrayRecord, metrics: MetricRecord) -> RecordDict:
    """Arrays of other shapes."""
    return wrap({name: Array(np.zeros((3, *a.shape), np.float32)) for name, a in trained.items()}, metrics)


def extra_keys(sent: ArrayRecord, trained: ArrayRecord, metrics: MetricRecord) -> RecordDict:
    """Arrays that nobody asked for."""
    return wrap({**trained, "backdoor": Array(np.ones(4, np.float32))}, metrics)


def many_examples(sent: ArrayRecord, trained: ArrayRecord, metrics: MetricRecord) -> RecordDict:
    """The opposite of its update, with the claim to have 10^12 examples."""
    return wrap(push(sent, trained, -1.0), MetricRecord({**metrics, "num-examples": 10**12}))


def complex_numbers(sent: ArrayRecord, trained: ArrayRecord, metrics: MetricRecord) -> RecordDict:
    """Complex numbers."""
    return wrap({name: Array(a.numpy() + np.complex64(100j)) for name, a in trained.items()}, metrics)


def strings(sent: ArrayRecord, trained: ArrayRecord, metrics: MetricRecord) -> RecordDict:
    """Text in place of numbers."""
    return wrap({name: Array(np.full(a.shape, "hello")) for name, a in trained.items()}, metrics)


def corrupt(sent: ArrayRecord, trained: ArrayRecord, metrics: MetricRecord) -> RecordDict:
    """Bytes that are no array."""
    return wrap(
        {name: Array(a.dtype, a.shape, a.stype, b"\x93NUMPY" + b"?" * 40) for name, a in trained.items()}, metrics
    )


def error(sent: ArrayRecord, trained: ArrayRecord, metrics: MetricRecord) -> RecordDict:
    """An exception: the server gets an error at once."""
    raise RuntimeError("this client fails on purpose")


def crash(sent: ArrayRecord, trained: ArrayRecord, metrics: MetricRecord) -> RecordDict:
    """The end of the process: the server hears nothing before the timeout."""
    os._exit(1)


ATTACKS: dict[str, Attack] = {
    "sign-flip": sign_flip,
    "ipm": ipm,
    "nan": nan,
    "wrong-shape": wrong_shape,
    "extra-keys": extra_keys,
    "many-examples": many_examples,
    "complex": complex_numbers,
    "strings": strings,
    "corrupt": corrupt,
    "error": error,
    "crash": crash,
}
