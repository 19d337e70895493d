"""DTensors in state dicts: each rank's part of them on the way in, and DTensors again on the way out."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch.distributed as dist

from robagg._core.pytree import Path, describe_path, fill, walk


class Layout(NamedTuple):
    """How a DTensor lies over the ranks."""

    mesh: Any
    placements: tuple[Any, ...]
    shape: tuple[int, ...]
    stride: tuple[int, ...]


@dataclass(frozen=True)
class Parts:
    """This rank's part of each row."""

    rows: Any
    """What was given, with plain tensors in the place of DTensors."""
    layouts: Mapping[Path, Layout] = field(default_factory=dict)
    """Of most rows: where they have DTensors, and how those lie."""
    repeated: frozenset[Path] = frozenset()
    """Leaves that another rank holds too, and counts."""
    faults: Mapping[int, str] = field(default_factory=dict)
    """Rows that do not lie as most do, and why."""

    def wrap(self, value: Any) -> Any:
        """A value of such rows, with DTensors where those have them."""
        if not self.layouts:
            return value
        kind, nodes = _dtensor(), {path: node for path, node, _ in walk(value)}

        def make(path: Path) -> Any:
            if (layout := self.layouts.get(path)) is None:
                return nodes[path]
            mesh, placements, shape, stride = layout
            return kind.from_local(nodes[path], mesh, placements, run_check=False, shape=shape, stride=stride)

        return fill(value, (), make)

    def unwrap(self, value: Any) -> Any:
        """A state shaped like a row, with plain tensors."""
        return _split(value)[0] if self.layouts else value


def take_parts(x: Any, group: dist.ProcessGroup | None) -> Parts:
    """This rank's part of rows that may hold DTensors.

    Beside DTensors a plain tensor is held by every rank, as FSDP's buffers are, and counted by the first. Where there
    are none, every tensor is the rank's own columns.
    """
    if _dtensor() is None or not isinstance(x, Sequence) or isinstance(x, str | bytes):
        return Parts(x)
    split = [_split(row) for row in x]
    if not any(layouts for _, layouts, _ in split):
        return Parts(x)
    forms = Counter(frozenset(layouts.items()) for _, layouts, _ in split)
    most = dict(forms.most_common(1)[0][0])
    faults = {i: _compare(layouts, most) for i, (_, layouts, _) in enumerate(split) if layouts != most}
    rows = [row if i not in faults else None for i, (row, _, _) in enumerate(split)]
    first = dist.get_rank(group) == 0
    plain = next(leaves for i, (_, _, leaves) in enumerate(split) if i not in faults) - most.keys()
    again = {path for path, layout in most.items() if not _counts_here(path, layout)}
    return Parts(rows, most, frozenset(again if first else again | plain), faults)


def _split(row: Any) -> tuple[Any, dict[Path, Layout], set[Path]]:
    """A row with plain tensors, the layouts of its DTensors, and the paths of all its leaves."""
    kind = _dtensor()
    try:
        nodes = {path: node for path, node, inner in walk(row) if inner is None}
        layouts = {
            path: Layout(node.device_mesh, tuple(node.placements), tuple(node.shape), tuple(node.stride()))
            for path, node in nodes.items()
            if type(node) is kind
        }
        local = fill(row, (), lambda path: nodes[path].to_local() if path in layouts else nodes[path])
    except Exception:  # what cannot be read is for `read` to say
        return row, {}, set()
    return local, layouts, set(nodes)


def _counts_here(path: Path, layout: Layout) -> bool:
    """Whether this rank counts a DTensor: where it is repeated along the mesh, the first does."""
    if any(placement.is_partial() for placement in layout.placements):
        raise ValueError(f"a DTensor must be sharded or replicated, got a sum of parts in {describe_path(path)}")
    place = layout.mesh.get_coordinate()
    repeats = [k for k, placement in enumerate(layout.placements) if placement.is_replicate()]
    return place is not None and all(place[k] == 0 for k in repeats)


def _compare(layouts: Mapping[Path, Layout], most: Mapping[Path, Layout]) -> str:
    path = next(path for path in {**most, **layouts} if layouts.get(path) != most.get(path))
    return f"has {describe_path(path)} over the ranks in another way than most"


def _dtensor() -> Any:
    """The class of DTensors; None where nobody has imported it, so that there are none."""
    for name in ("torch.distributed.tensor", "torch.distributed._tensor"):
        if name in sys.modules:
            return sys.modules[name].DTensor
    return None
