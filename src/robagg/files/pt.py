"""What torch.save wrote: read with weights only, so that no code in it ever runs, and never loaded whole."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from robagg._core.leaf import UnusableError, cut, describe_kind, read_leaf
from robagg.files.header import DTYPES, LONG, FileFaultError
from robagg.files.source import Entry, Place, Source

MAPS = Path("/proc/self/maps")


class PtFile(Source):
    """One file that torch.save wrote: a dict of tensors by name.

    It is mapped to learn where in the file each tensor lies, which Linux tells; elsewhere it stays mapped.

    Args:
        path: where it is.
    """

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self.place = Place(path)
        try:
            found = torch.load(path, weights_only=True, mmap=True, map_location="cpu")
        except Exception as error:  # an unpickler of hostile bytes may raise anything
            kind = cut(type(error).__name__)
            raise FileFaultError(f"it must be a dict of tensors that torch.save wrote, got {kind}") from None
        if not isinstance(found, dict) or not all(isinstance(name, str) and len(name) <= LONG for name in found):
            raise FileFaultError(f"it must hold a dict of tensors by name, got {describe_kind(found)}")
        tensors = {name: _read_tensor(name, tensor) for name, tensor in found.items()}
        self.entries = {name: Entry(tensor.dtype, tuple(tensor.shape)) for name, tensor in tensors.items()}
        regions = _read_regions(path)
        self._offsets = {name: offset for name, t in tensors.items() if (offset := _find(t, regions)) is not None}
        self._mapped = {name: tensor for name, tensor in tensors.items() if name not in self._offsets}

    def read(self, name: str, start: int, out: Tensor) -> None:
        if name in self._offsets:
            self.place.read_into(self._offsets[name] + start * out.itemsize, out)
        else:
            out.copy_(self._mapped[name].view(-1)[start : start + len(out)])


def _read_tensor(name: str, found: object) -> Tensor:
    try:
        _, tensor = read_leaf(found)
    except UnusableError as error:
        raise FileFaultError(f"it has {cut(name)!r} {error}") from None
    if tensor.dtype not in DTYPES.values() or not tensor.is_cpu or not tensor.is_contiguous():
        raise FileFaultError(f"{cut(name)!r} must be dense numbers, row by row, got {cut(str(tensor.dtype))}")
    return tensor


def _read_regions(path: Path) -> list[tuple[int, int, int]]:
    """Where the file lies in memory: first and last address, and the place in the file."""
    wanted, regions = str(path.resolve()), []
    for line in MAPS.read_text(errors="replace").splitlines() if MAPS.exists() else ():
        addresses, _, offset, _, _, *name = line.split(maxsplit=5)
        if name == [wanted]:
            start, stop = (int(address, 16) for address in addresses.split("-"))
            regions.append((start, stop, int(offset, 16)))
    return regions


def _find(tensor: Tensor, regions: list[tuple[int, int, int]]) -> int | None:
    """Where in the file a tensor lies that is mapped from it."""
    first, last = tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes
    return next((offset + first - start for start, stop, offset in regions if start <= first and last <= stop), None)
