"""Hostile headers of safetensors files, drawn at random; tests/fuzzing.py tries many."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

from robagg.files.header import DTYPES, PREFIX, FileFaultError, read_header, read_length

NAMES = ("w", "b", "", "a.b", "__metadata__", "\ud800", "é" * 600, "w" * 1001)
NUMBERS = (0, 1, 2, 3, 4, 8, 24, -1, 2**31, 2**63, 2**64, 10**30, 1.0, 1e400, float("nan"), True, None, "3", [], {})
WORDS = ("F32", "F64", "BF16", "BOOL", "U64", "F8_E4M3", "f32", "", None, 3, ["F32"], {"F32": 1}, "F" * 5000)
ROOM = 64


def draw_header(random: random.Random) -> bytes:
    """A header that is right, or wrong in one of many ways."""
    entries: list[tuple[str, Any]] = []
    end = 0
    for k in range(random.randrange(4)):
        shape: Any = [random.randrange(4) for _ in range(random.randrange(3))]
        word: Any = random.choice([*DTYPES])
        stop: Any = end + math.prod(shape) * DTYPES[word].itemsize
        offsets: Any = [end, stop]
        name = random.choice((f"t{k}", *NAMES[:4])) if random.random() < 0.3 else f"t{k}"
        end = stop
        if random.random() < 0.2:
            wrong = random.randrange(5)
            shape = random.choice(NUMBERS) if wrong == 0 else shape
            word = random.choice(WORDS) if wrong == 1 else word
            offsets = [random.choice(NUMBERS), random.choice(NUMBERS)] if wrong == 2 else offsets
            shape = [random.choice(NUMBERS), *shape] if wrong == 3 else shape
            name = random.choice(NAMES) if wrong == 4 else name
        entry: Any = {"dtype": word, "shape": shape, "data_offsets": offsets}
        if random.random() < 0.03:
            entry = random.choice((*NUMBERS, {}, {**entry, "more": 1}))
        entries.append((name, entry))
    pairs = ",".join(f"{json.dumps(name)}:{json.dumps(entry)}" for name, entry in entries)
    raw = bytearray(b"{" + pairs.encode("utf-8", "replace") + b"}")
    kind = random.random()
    if kind < 0.25 and raw:
        for _ in range(random.randrange(1, 4)):
            raw[random.randrange(len(raw))] = random.randrange(256)
    elif kind < 0.3:
        del raw[random.randrange(len(raw)) :]
    elif kind < 0.32:
        raw = bytearray(random.randbytes(random.randrange(40)))
    elif kind < 0.33:
        depth = random.choice((10, 5000, 200_000))
        raw = bytearray(random.choice((b"[" * depth, b'{"a":' * depth, b"[" * depth + b"]" * depth)))
    elif kind < 0.34:
        raw = bytearray(b'{"w":' + b"9" * random.choice((20, 5000)) + b"}")
    return bytes(raw)


def try_header(raw: bytes, room: int) -> bool:
    """Whether it is taken; what is taken must be right, and what is not must end in a sentence."""
    try:
        spans = read_header(raw, room)
    except FileFaultError as fault:
        return check_sentence(str(fault))
    end = 0
    for span in spans.values():
        assert span.start == end
        end += math.prod(span.shape) * span.dtype.itemsize
    assert end == room
    return True


def check_sentence(text: str) -> bool:
    assert 0 < len(text) < 600, text
    return False


def try_drawn(random: random.Random, _: Path) -> bool:
    """Whether a drawn header is taken in any of a few rooms; and a drawn prefix."""
    raw = draw_header(random)
    rooms = {0, ROOM, random.randrange(200), _guess(raw)}
    taken = [try_header(raw, room) for room in rooms]
    prefix, size = random.randbytes(random.randrange(PREFIX + 2)), random.randrange(1 << 20)
    try:
        assert read_length(prefix, size) <= size
    except FileFaultError as fault:
        check_sentence(str(fault))
    return any(taken)


def _guess(raw: bytes) -> int:
    """The room that a header asks for, where it is one."""
    try:
        entries = json.loads(raw)
        return max(0, min(10**9, max((int(entry["data_offsets"][1]) for entry in entries.values()), default=0)))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError):
        return 0
