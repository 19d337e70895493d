"""Arrays that stay out of the distances: the median makes a broken one harmless, and here it is named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from robagg.server.model import ArraySpec, Flat
from robagg.server.screen import Screened

FAR = 1000.0
"""How many times as far from the median as most replies, and as the median is large, a number is odd."""


def find_odd(specs: Sequence[ArraySpec], replies: Sequence[Screened], values: Mapping[str, Flat]) -> dict[str, str]:
    """By client the first such array that lies far from the median of all, or is a variance below 0."""
    odd: dict[str, str] = {}
    for spec in specs:
        if not (value := _widen(values[spec.name])).numel():
            continue
        rows = [_widen(reply.arrays[spec.name]) for reply in replies]
        gaps = torch.stack([(row - value).abs().max() for row in rows])
        limit = FAR * max(1.0, float(gaps.median()), float(value.abs().max()))
        for reply, row, gap in zip(replies, rows, gaps.tolist(), strict=True):
            if gap > limit:
                odd.setdefault(reply.client, f"{spec.name!r} lies {gap:.3g} from the median of all replies")
            elif spec.name.endswith(("var", "variance")) and bool((row < 0).any()):
                odd.setdefault(reply.client, f"{spec.name!r} is a variance and below 0 at {float(row.min()):.3g}")
    return odd


def _widen(flat: Flat) -> Tensor:
    return torch.as_tensor(flat.astype("float64") if not isinstance(flat, Tensor) else flat).double()
