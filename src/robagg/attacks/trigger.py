"""Trigger: a few pixels that a backdoor answers to."""

from __future__ import annotations

import torch
from torch import Tensor


def stamp(x: Tensor, size: int, part: tuple[int, int] = (0, 1)) -> Tensor:
    """Samples (N, ..., H, W), or (N, d) as images of one line, with a square set to their largest number.

    Args:
        x: is not changed.
        size: side of the square in the last corner, at most the image's.
        part: (k, m) sets the k-th of m parts of its pixels, in the order of the lines; (0, 1) sets all. Of more parts
            than pixels each is one pixel, dealt in turn.

    >>> stamp(torch.arange(9.0).view(1, 3, 3), 2)
    tensor([[[0., 1., 2.],
             [3., 8., 8.],
             [6., 8., 8.]]])
    >>> stamp(torch.arange(9.0).view(1, 3, 3), 2, part=(1, 2))
    tensor([[[0., 1., 2.],
             [3., 4., 5.],
             [6., 8., 8.]]])
    """
    if x.ndim < 2:
        raise ValueError(f"samples for a trigger must be (N, ..., H, W) or (N, d), got {tuple(x.shape)}")
    stamped = x.clone()
    if not x.numel():
        return stamped
    image = stamped[:, None] if x.ndim == 2 else stamped
    height, width = (min(size, side) for side in image.shape[-2:])
    k, m = part
    m = min(m, height * width)
    k %= m
    pixels = range(k * height * width // m, (k + 1) * height * width // m)
    for at in pixels:
        image[..., image.shape[-2] - height + at // width, image.shape[-1] - width + at % width] = x.max()
    return stamped


def choose_share(count: int, share: float) -> Tensor:
    """Which (count,) of the samples are poisoned: so many, evenly spread.

    >>> choose_share(4, 0.5)
    tensor([False,  True, False,  True])
    """
    ends = torch.tensor([int(k * share + 1e-9) for k in range(count + 1)])
    return ends[1:] > ends[:-1]
