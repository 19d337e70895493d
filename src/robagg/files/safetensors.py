"""Safetensors files, and checkpoints of several of them with an index."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from robagg.files.header import LONGEST, PREFIX, FileFaultError, read_header, read_json, read_length
from robagg.files.source import Entry, Place, Source

INDEX = "model.safetensors.index.json"


class SafetensorsFile(Source):
    """One safetensors file.

    Args:
        path: where it is.
        name: how it is called in verdicts; its path where none is given.
    """

    def __init__(self, path: Path, name: str = "") -> None:
        self.name = name or str(path)
        self.place = Place(path)
        length = read_length(self.place.read_bytes(0, PREFIX), self.place.size)
        self.origin = PREFIX + length
        raw = self.place.read_bytes(PREFIX, length)
        if len(raw) < length:
            raise FileFaultError(f"it ends after {PREFIX + len(raw)} bytes")
        self.spans = read_header(raw, self.place.size - self.origin)
        self.entries = {name: Entry(span.dtype, span.shape) for name, span in self.spans.items()}

    def read(self, name: str, start: int, out: Tensor) -> None:
        self.place.read_into(self.origin + self.spans[name].start + start * out.itemsize, out)


class ShardedCheckpoint(Source):
    """A checkpoint of several safetensors files, with an index that says which of them has which tensor.

    Args:
        path: the index, `model.safetensors.index.json`.
        name: how it is called in verdicts; its path where none is given.
    """

    def __init__(self, path: Path, name: str = "") -> None:
        self.name = name or str(path)
        place = Place(path)
        if place.size > LONGEST:
            raise FileFaultError(f"its index must have at most {LONGEST} bytes, got {place.size}")
        index = read_json(place.read_bytes(0, place.size)).get("weight_map")
        if not isinstance(index, dict) or not all(isinstance(file, str) for file in index.values()):
            raise FileFaultError("its index must have a weight_map from names to files")
        self.shards: dict[str, SafetensorsFile] = {}
        for file in dict.fromkeys(index.values()):
            if not file.endswith(".safetensors") or {"/", "\\", "\0"} & {*file}:
                raise FileFaultError(f"its index must name safetensors files beside it, got {file[:80]!r}")
            try:
                self.shards[file] = SafetensorsFile(path.parent / file)
            except FileFaultError as fault:
                raise FileFaultError(f"{file[:80]}: {fault}") from None
        self.homes: dict[str, SafetensorsFile] = {}
        for name, file in index.items():
            if name not in self.shards[file].entries:
                raise FileFaultError(f"{file[:80]} must hold {name[:80]!r}, as its index says, and does not")
            self.homes[name] = self.shards[file]
        self.entries = {
            name: entry
            for shard in self.shards.values()
            for name, entry in shard.entries.items()
            if self.homes.get(name) is shard
        }

    def read(self, name: str, start: int, out: Tensor) -> None:
        self.homes[name].read(name, start, out)
