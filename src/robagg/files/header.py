"""The header of a safetensors file, read without trust: pure functions of bytes, whose every fault is a sentence.

The file is eight bytes with the header's length, the header in JSON, and then the numbers of all tensors, one after
the other, without overlaps or holes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from robagg._core.leaf import cut

PREFIX = 8
LONGEST = 100_000_000
"""The most bytes of a header; the format's own library reads no more either."""
LONG = 1000
"""The most characters of a tensor's name."""
DEEP = 64
"""The most dimensions of a tensor; torch has no more."""
DTYPES: dict[str, torch.dtype] = {
    **{"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16},
    **{"I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8},
    "BOOL": torch.bool,
}
WORDS = {dtype: word for word, dtype in DTYPES.items()}


class FileFaultError(ValueError):
    """Why a file cannot be used. Its message ends the sentence `model.safetensors: ...`."""


class Span(NamedTuple):
    """Where in a file the numbers of a tensor lie."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int
    """The first byte, counted from the end of the header."""


def read_length(prefix: bytes, size: int) -> int:
    """The length of the header from the first bytes of a file of so many.

    >>> read_length((16).to_bytes(8, "little"), 100)
    16
    >>> read_length(b"\\xff" * 8, 100)
    Traceback (most recent call last):
    ...
    robagg.files.header.FileFaultError: its header must lie within the file, got 18446744073709551615 bytes of 100
    """
    if len(prefix) < PREFIX:
        raise FileFaultError(f"it must begin with the {PREFIX} bytes of a length, got {len(prefix)}")
    length = int.from_bytes(prefix[:PREFIX], "little")
    if length > size - PREFIX:
        raise FileFaultError(f"its header must lie within the file, got {length} bytes of {size}")
    if length > LONGEST:
        raise FileFaultError(f"its header must have at most {LONGEST} bytes, got {length}")
    return length


def read_header(raw: bytes, room: int) -> dict[str, Span]:
    """The tensors of a file by name, in the order of their bytes, of which `room` follow the header.

    >>> read_header(b'{"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}', 24)
    {'w': Span(dtype=torch.float32, shape=(2, 3), start=0)}
    """
    found = sorted((*_read_entry(name, entry, room), name) for name, entry in read_json(raw).items() if name != META)
    spans, end = {}, 0
    for start, stop, word, shape, name in found:
        if start != end:
            fault = "overlap with those before" if start < end else f"leave {start - end} bytes before them unused"
            raise FileFaultError(f"the bytes of {_quote(name)} {fault}")
        end = stop
        spans[name] = Span(DTYPES[word], shape, start)
    if end != room:
        raise FileFaultError(f"its tensors must fill the file, got {end} of {room} bytes")
    return spans


META = "__metadata__"


def read_json(raw: bytes) -> dict[str, Any]:
    """A JSON object without duplicate names, whatever the bytes are."""
    try:
        found = json.loads(raw.decode("utf-8"), object_pairs_hook=_collect)
    except FileFaultError:
        raise
    except (ValueError, RecursionError) as error:
        # Of a hostile file the reason may be as long as the file.
        raise FileFaultError(f"its header must be JSON, got {cut(type(error).__name__)}") from None
    if not isinstance(found, dict):
        raise FileFaultError(f"its header must be a JSON object, got {cut(type(found).__name__)}")
    return found


def write_header(tensors: Mapping[str, tuple[torch.dtype, tuple[int, ...]]]) -> tuple[bytes, dict[str, int]]:
    """The bytes before the tensors of a file, and where in it each one starts."""
    entries: dict[str, Any] = {META: {"format": "pt"}}
    offset, starts = 0, {}
    for name, (dtype, shape) in tensors.items():
        stop = offset + math.prod(shape) * dtype.itemsize
        entries[name] = {"dtype": WORDS[dtype], "shape": list(shape), "data_offsets": [offset, stop]}
        starts[name], offset = offset, stop
    raw = json.dumps(entries, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)  # so that numbers lie where processors read them at once
    return len(raw).to_bytes(PREFIX, "little") + raw, {k: v + PREFIX + len(raw) for k, v in starts.items()}


def _collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names: set[str] = set()
        twice = next(name for name, _ in pairs if name in names or names.add(name))  # type: ignore[func-returns-value]
        raise FileFaultError(f"it names {_quote(twice)} twice")
    return found


def _read_entry(name: str, entry: Any, room: int) -> tuple[int, int, str, tuple[int, ...]]:
    if len(name) > LONG:
        raise FileFaultError(f"a name must have at most {LONG} characters, got {len(name)}")
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise FileFaultError(f"{_quote(name)} must have a dtype, a shape and data_offsets, and nothing else")
    word, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(word, str) or word not in DTYPES:
        raise FileFaultError(f"{_quote(name)} must be of {', '.join(DTYPES)}, got {cut(repr(word)[:200])}")
    if not _are_counts(shape) or len(shape) > DEEP:
        raise FileFaultError(f"the shape of {_quote(name)} must be at most {DEEP} whole numbers, got {_show(shape)}")
    if not _are_counts(offsets) or len(offsets) != 2:
        raise FileFaultError(f"the data_offsets of {_quote(name)} must be two whole numbers, got {_show(offsets)}")
    start, stop = offsets
    if not start <= stop <= room:
        raise FileFaultError(f"the bytes of {_quote(name)} must lie within the file's {room}, got {start} to {stop}")
    if math.prod(shape) * DTYPES[word].itemsize != stop - start:
        raise FileFaultError(f"{_quote(name)} must have the bytes of {word} {_show(shape)}, got {stop - start}")
    return start, stop, word, tuple(shape)


def _are_counts(numbers: Any) -> bool:
    """Whether it is a list of whole numbers that a size can be."""
    return isinstance(numbers, list) and all(type(x) is int and 0 <= x < 2**63 for x in numbers)


def _quote(name: str) -> str:
    return repr(cut(name))


def _show(numbers: Any) -> str:
    return cut(str(numbers[:9])) if isinstance(numbers, list) else cut(type(numbers).__name__)
