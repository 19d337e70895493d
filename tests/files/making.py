"""Models in files, for the tests of what reads them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from robagg.files.header import write_header
from robagg.files.safetensors import SafetensorsFile
from robagg.files.source import view_bytes

Model = dict[str, Tensor]


def draw_models(n: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> list[Model]:
    """n models that differ by noise, the last two of which lie far from the others."""
    g = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=g)

    models = []
    for k in range(n):
        far = 4.0 if k >= n - 2 else 0.0
        models.append(
            {
                "wide.weight": (draw(90, 70) + 1 + far).to(dtype),
                "wide.bias": draw(70).to(dtype),
                "half": (draw(40, 30) - far).to(torch.bfloat16),
                "empty": torch.zeros(0, 3),
                "seen": torch.tensor(100 + k),
                "counts": torch.randint(0, 9, (4, 5), generator=g, dtype=torch.int32),
                "scalar": draw().to(torch.float16),
            }
        )
    return models


def save(path: Path, model: Mapping[str, Tensor]) -> Path:
    """As a writer would, but without waiting for the disk."""
    head, starts = write_header({name: (tensor.dtype, tuple(tensor.shape)) for name, tensor in model.items()})
    parts = [bytes(view_bytes(tensor.reshape(-1))) for tensor in model.values()]
    assert [*starts.values()] == [len(head) + sum(map(len, parts[:k])) for k in range(len(parts))]
    path.write_bytes(b"".join([head, *parts]))
    return path


def save_all(folder: Path, models: list[Model]) -> list[Path]:
    return [save(folder / f"client{k:02}.safetensors", model) for k, model in enumerate(models)]


def load(path: Path) -> Model:
    file, model = SafetensorsFile(path), {}
    for name, entry in file.entries.items():
        flat = torch.empty(entry.count, dtype=entry.dtype)
        file.read(name, 0, flat)
        model[name] = flat.view(entry.shape)
    return model
