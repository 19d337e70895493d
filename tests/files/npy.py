"""Hostile headers of .npy arrays, drawn at random: as a member of an .npz, and as a reply's array in Flower."""

from __future__ import annotations

import random
import struct
import zipfile
from pathlib import Path

import numpy as np

from robagg.files.header import FileFaultError
from robagg.files.npz import NpzFile

try:
    from flwr.app import Array

    from robagg.flower import npy
    from robagg.server.model import UnfitError
except ImportError:
    npy = None  # type: ignore[assignment]

NUMBERS = np.arange(6, dtype="<f4").tobytes()
DTYPES = (
    "<f4",
    "<f8",
    "<f2",
    "<i8",
    ">f4",
    "|b1",
    "<c8",
    "<U5",
    "|O",
    "<M8[ns]",
    "",
    "f",
    "<f99",
    "[('a', '<f4')]",
    "|V24",
)
SHAPES = (
    "(6,)",
    "(2, 3)",
    "(3, 2)",
    "()",
    "(0,)",
    "(-6,)",
    "(6, -1)",
    "(1.0,)",
    "(True,)",
    "6",
    "[6]",
    "('6',)",
    "(2**70,)",
)
SHAPES += ("(99999999999999999999,)", "(6,)" + " " * 5000, "(" * 200, "(" * 5000, "(6,),", "None", "{}", "(6, (7,))")
FLAGS = ("False", "True", "0", "None", "'no'", "[]")
EXTRA = (
    "",
    "",
    "",
    "",
    "'more': 1, ",
    "'descr': '<f4', ",
    "b'shape': (6,), ",
    "1: 2, ",
    "\0",
    "é",
    "-" * 4000 + "1: 2, ",
)


def draw_array(random: random.Random) -> bytes:
    """An array that is right, or wrong in one of many ways."""
    kind = random.random()
    right = kind < 0.3
    dtype = DTYPES[0] if right else random.choice(DTYPES)
    shape = random.choice(SHAPES[:2]) if right else random.choice(SHAPES)
    flag = random.choice(FLAGS[:2]) if right else random.choice(FLAGS)
    named = dtype if dtype.startswith("[") else repr(dtype)
    extra = "" if right else random.choice(EXTRA)
    text = f"{{'descr': {named}, 'fortran_order': {flag}, 'shape': {shape}, {extra}}}"
    head = bytearray((text + " " * (-(len(text) + 11) % 64) + "\n").encode("utf-8"))
    version = (1, 0) if right else random.choice(((1, 0), (1, 0), (2, 0), (3, 0), (0, 0), (9, 9)))
    if kind > 0.9:
        for _ in range(random.randrange(1, 4)):
            head[random.randrange(len(head))] = random.randrange(256)
    length = len(head) if random.random() < 0.95 else random.randrange(70_000)
    size = struct.pack("<H", length % 65536) if version[0] < 2 else struct.pack("<I", length)
    numbers = NUMBERS if random.random() < 0.9 else random.randbytes(random.randrange(100))
    raw = b"\x93NUMPY" + bytes(version) + size + bytes(head) + numbers
    return raw[: random.randrange(len(raw))] if 0.8 < kind < 0.85 else raw


def try_npz(random: random.Random, folder: Path) -> bool:
    """Whether it is taken as the one member of a file; what is not must end in a sentence."""
    path = folder / "model.npz"
    raw = draw_array(random)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("w.npy", raw)
    if random.random() < 0.2:
        whole = bytearray(path.read_bytes())
        for _ in range(random.randrange(1, 4)):
            whole[random.randrange(len(whole))] ^= 1 << random.randrange(8)
        path.write_bytes(whole)
    try:
        NpzFile(path)
    except FileFaultError as fault:
        return check_sentence(str(fault))
    return True


def try_reply(random: random.Random, _: Path) -> bool:
    """Whether it is taken as an array of a reply in Flower."""
    assert npy is not None, "needs the extra robagg[flower]"
    raw = draw_array(random)
    header = b"" if random.random() < 0.5 else raw[:-24]
    spec = npy.Spec("w", (6,), np.dtype("<f4"), False, False, np.dtype("<f4"), False, header)
    array = Array("float32", random.choice(((6,), (2, 3), ())), random.choice(("numpy.ndarray",) * 9 + ("torch",)), raw)
    try:
        numbers = npy.view(array, spec)
    except UnfitError as fault:
        return check_sentence(str(fault))
    assert numbers.shape == (6,) and numbers.dtype == np.dtype("<f4")
    return True


def check_sentence(text: str) -> bool:
    assert 0 < len(text) < 1000, text
    return False
