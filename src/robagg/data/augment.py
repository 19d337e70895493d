"""Random crops and flips of a whole batch on its own device, without waiting for the host."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional


def crop_and_flip(
    x: Tensor, generator: torch.Generator | None, padding: int = 4, border: Sequence[float] = ()
) -> Tensor:
    """Pad each image, cut a random window of the old size, and mirror half of them.

    Each image has its own draw. Sizes are fixed and nothing is read back, so that a CUDA graph can capture it (with
    the generator registered to the graph).

    Args:
        x: (..., C, H, W).
        generator: on the device of `x`; None means torch's default one.
        padding: pixels added on each side, so the largest shift.
        border: their value, one per channel; none: zeros, the mean pixel of normalised images.

    Example:
        >>> x = torch.rand(2, 5, 3, 8, 8)
        >>> crop_and_flip(x, torch.Generator().manual_seed(0)).shape
        torch.Size([2, 5, 3, 8, 8])
    """
    if padding < 0:
        raise ValueError(f"padding must be at least 0, got {padding}")
    if border and len(border) != x.shape[-3]:
        raise ValueError(f"border must have a value for each of {x.shape[-3]} channels, got {len(border)}")
    count = x.shape[:-3].numel()
    top, left = torch.randint(2 * padding + 1, (2, count), generator=generator, device=x.device)
    mirrored = torch.randint(2, (count,), generator=generator, device=x.device).bool()
    return shift_and_mirror(x, top, left, mirrored, padding, border)


def shift_and_mirror(
    x: Tensor, top: Tensor, left: Tensor, mirrored: Tensor, padding: int, border: Sequence[float] = ()
) -> Tensor:
    """Cut from each padded image the window at (top, left), and mirror it where asked.

    Args:
        x: (..., C, H, W), B images in all.
        top, left: (B,) integers in 0 to 2 * padding; `padding` means no shift.
        mirrored: (B,) bool.
        padding: pixels added on each side.
        border: their value, one per channel; none: zeros.

    Example:
        >>> x = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
        >>> at = torch.tensor([1])
        >>> shift_and_mirror(x, at, at, torch.tensor([True]), padding=1).flatten().tolist()
        [2.0, 1.0, 4.0, 3.0]
    """
    channels, height, width = x.shape[-3:]
    padded = functional.pad(x, (padding,) * 4)
    if border:
        for channel, value in enumerate(border):
            padded[..., channel, :, :] = value
        padded[..., padding : padding + height, padding : padding + width] = x
    padded = padded.reshape(-1, channels, (height + 2 * padding) * (width + 2 * padding))
    across = torch.arange(width, device=x.device)
    rows = top[:, None] + torch.arange(height, device=x.device)
    columns = left[:, None] + torch.where(mirrored[:, None], width - 1 - across, across)
    index = rows[:, :, None] * (width + 2 * padding) + columns[:, None, :]
    index = index.reshape(-1, 1, height * width).expand(-1, channels, -1)
    return padded.gather(2, index).reshape(x.shape)
