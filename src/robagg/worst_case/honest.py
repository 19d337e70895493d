"""Honest rows to place Byzantine rows among: alike, skewed, clustered, or with copies of one client."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

LABELS = 10
COPIES = 1e-3
"""How far copies are apart, in roots of the variance of the other rows."""


def draw_honest(kind: str, h: int, d: int, seed: int = 0) -> Tensor:
    """Rows (h, d) in float64 with mean 0 and variance 1 (the mean squared length).

    Kinds: gaussian (independent, in all directions alike), skewed (one or two of ten labels each, lengths from 0.5 to
    1.5), clustered (four clusters of unequal sizes and widths), quarter (Gaussian, a quarter of them copies of one),
    half (half of them copies).

    Example:
        >>> x = draw_honest("half", 14, 40)
        >>> round(float(x.square().sum(dim=1).mean()), 6)
        1.0
    """
    if kind not in HONEST:
        raise ValueError(f"honest rows must be one of {', '.join(HONEST)}, got {kind!r}")
    generator = torch.Generator().manual_seed(seed)
    x = HONEST[kind](lambda *size: torch.randn(*size, generator=generator, dtype=torch.float64), h, d)
    x = x - x.mean(dim=0)
    return x / x.square().sum(dim=1).mean().sqrt()


Normal = Callable[..., Tensor]


def _skew(normal: Normal, h: int, d: int) -> Tensor:
    labels = normal(LABELS, d)
    first = torch.arange(h) * LABELS // h
    second = ((torch.arange(h) + 1) * LABELS - 1) // h
    length = 0.5 + torch.special.ndtr(normal(h, 1))
    rows: Tensor = length * (labels[first] + labels[second]) / 2 + 0.25 * normal(h, d)
    return rows


def _cluster(normal: Normal, h: int, d: int) -> Tensor:
    sizes = torch.tensor([h - h // 4 - h // 5 - 1, h // 4, h // 5, 1])
    which = torch.arange(4).repeat_interleave(sizes)
    widths = torch.tensor([0.2, 0.4, 0.7, 1.0], dtype=torch.float64)
    return 2 * normal(4, d)[which] + widths[which][:, None] * normal(h, d)


def _copy(share: float) -> Callable[[Normal, int, int], Tensor]:
    def draw(normal: Normal, h: int, d: int) -> Tensor:
        x = normal(h, d)
        count = int(share * h)
        x[:count] = x[0] + COPIES * normal(count, d)
        return x

    return draw


HONEST: dict[str, Callable[[Normal, int, int], Tensor]] = {
    "gaussian": lambda normal, h, d: normal(h, d),
    "skewed": _skew,
    "clustered": _cluster,
    "quarter": _copy(0.25),
    "half": _copy(0.5),
}
"""Kinds of honest rows by name."""
