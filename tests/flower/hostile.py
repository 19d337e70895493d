"""Everything a hostile or broken client may send: what the example's attackers do, and what is made by hand."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs the extra robagg[flower]")

from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict

from flower.federation import Hostile, attackers, pack, unpack

ATTACKS, push, wrap = attackers.ATTACKS, attackers.push, attackers.wrap


def replace(record: ArrayRecord, array: Array, name: str = "layer.bias") -> ArrayRecord:
    return ArrayRecord({**record, name: array})


def claim(value: Any) -> Hostile:
    """The opposite of the honest update, with some number of examples."""
    return lambda sent, trained, metrics: wrap(
        push(sent, trained, -1.0), MetricRecord({**metrics, "num-examples": value})
    )


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
    **{name: attack for name, attack in ATTACKS.items() if name in {
        "nan", "wrong-shape", "extra-keys", "complex", "strings", "corrupt"
    }},
    "one-inf": lambda s, t, m: wrap(replace(t, Array(np.array([0, 0, np.inf, 0, 0, 0, 0], np.float32))), m),
    "missing-key": lambda s, t, m: wrap({k: v for k, v in t.items() if k != "layer.bias"}, m),
    "no-arrays": lambda s, t, m: RecordDict({"metrics": m}),
    "empty-arrays": lambda s, t, m: wrap(ArrayRecord(), m),
    "two-array-records": lambda s, t, m: RecordDict({"arrays": t, "more": t, "metrics": m}),
    "two-metric-records": lambda s, t, m: RecordDict({"arrays": t, "metrics": m, "more": m}),
    "config-only": lambda s, t, m: RecordDict({"c": ConfigRecord({"hello": "world"})}),
    "nothing": lambda s, t, m: RecordDict(),
    "other-type": lambda s, t, m: wrap(replace(t, Array("float32", (7,), "torch.Tensor", GOOD)), m),
    "objects": raw(saved(np.array([None] * 7, dtype=object), allow_pickle=True)),
    "records": lambda s, t, m: wrap(replace(t, Array(np.zeros(7, "f4,f4"))), m),
    "long-double": lambda s, t, m: wrap(replace(t, Array(np.zeros(7, np.longdouble))), m),
    "beyond-float32": lambda s, t, m: wrap(replace(t, Array(np.full(7, 1e300))), m),
    "zip-bomb": raw(zipped()),
    "coloured-type": lambda s, t, m: wrap(replace(t, Array("float32", (7,), "\x1b[2J\x1b[31mnode 100 sound", b"")), m),
    "coloured-name": lambda s, t, m: wrap({**t, "\x1b[2J\u202ex": t["layer.bias"]}, m),
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
    "nan-examples": claim(float("nan")),
    "infinite-examples": claim(float("inf")),
    "negative-examples": claim(-5),
    "list-of-examples": claim([1, 2]),
    "unwritable-examples": claim(10**400),
}  # fmt: skip
"""Replies that cannot be used: they must be dropped with a reason."""

FAR: dict[str, Hostile] = {
    "ipm": ATTACKS["ipm"],
    "sign-flip": ATTACKS["sign-flip"],
    "many-examples": ATTACKS["many-examples"],
    "zero-examples": claim(0),
    "huge": lambda s, t, m: wrap(pack({k: np.full(v.shape, 3e38, v.dtype) for k, v in unpack(t).items()}), m),
    "integers": lambda s, t, m: wrap(replace(t, Array(np.full(7, 2**62))), m),
    "booleans": lambda s, t, m: wrap(replace(t, Array(np.ones(7, bool))), m),
    "zeros": lambda s, t, m: wrap(pack({k: np.zeros_like(v) for k, v in unpack(t).items()}), m),
}
"""Replies that can be read but lie far from the honest ones: the rule must cope."""
