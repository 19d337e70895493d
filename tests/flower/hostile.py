"""The hostile table in Flower's messages, and what only bytes can be: headers that are wrong, records too many."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs the extra robagg[flower]")

from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict

from flower.federation import Hostile, attackers, pack, unpack
from server import hostile

ATTACKS, wrap = attackers.ATTACKS, attackers.wrap


def send(attack: hostile.Hostile) -> Hostile:
    """A reply of the table as a message's content."""

    def craft(sent: ArrayRecord, trained: ArrayRecord, metrics: MetricRecord) -> RecordDict:
        arrays, claims = attack(unpack(sent), unpack(trained), dict(metrics))
        return wrap(pack(arrays), MetricRecord(claims))

    return craft


def replace(record: ArrayRecord, array: Array, name: str = "layer.bias") -> ArrayRecord:
    return ArrayRecord({**record, name: array})


def raw(data: bytes) -> Hostile:
    """An array of these very bytes."""
    return lambda sent, trained, metrics: wrap(replace(trained, Array("float32", (7,), "numpy.ndarray", data)), metrics)


def saved(array: np.ndarray, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, **options)
    return buffer.getvalue()


def zipped() -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, a=np.zeros(10_000_000, np.float32))
    return buffer.getvalue()


GOOD = saved(np.zeros(7, np.float32))
HEADER = len(GOOD) - 28


def header(text: str) -> bytes:
    line = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line + b"\0" * 28


BROKEN: dict[str, Hostile] = {
    **{name: send(attack) for name, attack in hostile.BROKEN.items() if name != "objects"},
    "corrupt": ATTACKS["corrupt"],
    "no-arrays": lambda s, t, m: RecordDict({"metrics": m}),
    "two-array-records": lambda s, t, m: RecordDict({"arrays": t, "more": t, "metrics": m}),
    "two-metric-records": lambda s, t, m: RecordDict({"arrays": t, "metrics": m, "more": m}),
    "config-only": lambda s, t, m: RecordDict({"c": ConfigRecord({"hello": "world"})}),
    "nothing": lambda s, t, m: RecordDict(),
    "other-type": lambda s, t, m: wrap(replace(t, Array("float32", (7,), "torch.Tensor", GOOD)), m),
    "objects": raw(saved(np.array([None] * 7, dtype=object), allow_pickle=True)),
    "zip-bomb": raw(zipped()),
    "coloured-type": lambda s, t, m: wrap(replace(t, Array("float32", (7,), "\x1b[2J\x1b[31mnode 100 sound", b"")), m),
    "no-bytes": raw(b""),
    "cut-short": raw(GOOD[:-1]),
    "too-long": raw(GOOD + b"\0"),
    "far-too-long": raw(GOOD + bytes(10_000_000)),
    "only-header": raw(GOOD[:HEADER]),
    "bad-magic": raw(b"X" + GOOD[1:]),
    "version-9": raw(GOOD[:6] + b"\x09" + GOOD[7:]),
    "header-lies": raw(header("{'descr': '<f4', 'fortran_order': False, 'shape': (7000000,), }")),
    "negative-shape": raw(header("{'descr': '<f4', 'fortran_order': False, 'shape': (-7,), }")),
    "huge-shape": raw(header("{'descr': '<f4', 'fortran_order': False, 'shape': (" + "9" * 40 + ",), }")),
    "code-in-header": raw(header("{'descr': __import__('os').abort(), 'fortran_order': False, 'shape': (7,), }")),
    "nested-header": raw(header("(" * 60)),
}
"""Replies that cannot be used: they must be dropped with a reason."""

FAR: dict[str, Hostile] = {name: send(attack) for name, attack in hostile.FAR.items()}
"""Replies that can be read but lie far from the honest ones: the rule must cope."""
