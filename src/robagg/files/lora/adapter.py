"""One adapter: the two factors of each module's update, as PEFT's folders hold them."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from robagg._core.leaf import FLOATS, LeafSpec, cut
from robagg._core.pytree import Form
from robagg.files.header import FileFaultError
from robagg.files.lora.config import CONFIG, AdapterConfig, read_config, write_config
from robagg.files.safetensors import SafetensorsFile
from robagg.files.source import Entry
from robagg.files.writing import Writer

MODEL = "adapter_model.safetensors"
PREFIX = "base_model.model."
ENDS = ((".lora_A.weight", ".lora_B.weight"), (".lora_embedding_A", ".lora_embedding_B"))
"""How the names of the factors of a layer and of an embedding end."""


@dataclass(frozen=True)
class Factors:
    """A module's update `scale * b @ a`."""

    a: Tensor
    """(r, in)"""
    b: Tensor
    """(out, r)"""
    scale: float
    ends: tuple[str, str]

    @property
    def shape(self) -> tuple[int, int]:
        return self.b.shape[0], self.a.shape[1]


@dataclass(frozen=True)
class Adapter:
    """The updates of all modules of a model."""

    modules: Mapping[str, Factors]
    config: AdapterConfig

    def form(self) -> Form:
        """What must agree between clients."""
        how = "transposed update of" if self.config.transposed else "update of"
        return frozenset(
            ((name,), LeafSpec("an embedding's" if f.ends == ENDS[1] else "an", how, f.shape))
            for name, f in self.modules.items()
        )


def read_adapter(folder: Path) -> Adapter:
    """The adapter in a folder; what cannot be taken is a FileFaultError or OSError."""
    config = read_config(folder)
    try:
        tensors = _read_tensors(folder / MODEL)
        modules = {}
        for name in sorted(tensors):
            ends = next((ends for ends in ENDS if name.endswith(ends)), None)
            if ends is None or not name.startswith(PREFIX):
                raise FileFaultError(f"it must hold factors of LoRA alone, got {cut(name)!r}")
            stem = next(name.removesuffix(end) for end in ends if name.endswith(end))
            if stem + ends[0] not in tensors or stem + ends[1] not in tensors:
                raise FileFaultError(f"{cut(name)!r} must come with its other factor")
            module = stem.removeprefix(PREFIX)
            modules[module] = _join(module, tensors[stem + ends[0]], tensors[stem + ends[1]], ends, config)
    except FileFaultError as fault:
        raise FileFaultError(f"{MODEL}: {fault}") from None
    if not modules:
        raise FileFaultError(f"{MODEL}: it must hold factors, got none")
    return Adapter(modules, config)


def write_adapter(folder: Path, modules: Mapping[str, Factors], configs: Sequence[AdapterConfig]) -> None:
    """Write a folder that PEFT loads, whole or not at all; its scale is one. A folder of that name is replaced."""
    tensors = {}
    for module, factors in modules.items():
        for end, factor in zip(factors.ends, (factors.a, factors.b), strict=True):
            tensors[PREFIX + module + end] = factor
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = folder.with_name(f".{folder.name[:100]}.{secrets.token_hex(4)}.part")
    beside.mkdir()
    try:
        with Writer(beside / MODEL, {name: Entry(t.dtype, tuple(t.shape)) for name, t in tensors.items()}) as writer:
            for name, tensor in tensors.items():
                writer.write(name, 0, tensor.reshape(-1))
        with (beside / CONFIG).open("wb") as file:
            file.write(write_config({module: len(factors.a) for module, factors in modules.items()}, configs))
            file.flush()
            os.fsync(file.fileno())
        if folder.is_dir():  # no system puts a folder in the place of one that is not empty
            for name in (CONFIG, MODEL):
                (beside / name).replace(folder / name)
            beside.rmdir()
        else:
            beside.rename(folder)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _read_tensors(path: Path) -> dict[str, Tensor]:
    file, tensors = SafetensorsFile(path), {}
    for name, entry in file.entries.items():
        if entry.dtype not in FLOATS or len(entry.shape) != 2 or not entry.count:
            raise FileFaultError(f"{cut(name)!r} must be a matrix of floating-point numbers, got {list(entry.shape)}")
        flat = torch.empty(entry.count, dtype=entry.dtype)
        file.read(name, 0, flat)
        if not bool(torch.isfinite(flat).all()):
            raise FileFaultError(f"{cut(name)!r} is not finite")
        tensors[name] = flat.view(entry.shape)
    return tensors


def _join(module: str, a: Tensor, b: Tensor, ends: tuple[str, str], config: AdapterConfig) -> Factors:
    rank = config.find_rank(module)
    if not len(a) == b.shape[1] == rank:
        raise FileFaultError(
            f"the factors of {cut(module)!r} must have rank {rank:g}, as {CONFIG} says, got {len(a)} and {b.shape[1]}"
        )
    return Factors(a, b, config.find_scale(module), ends)
