"""Crops and flips equal a plain loop over the images."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from robagg.data import crop_and_flip


def crop_and_flip_slowly(x: Tensor, generator: torch.Generator, padding: int) -> Tensor:
    images = x.reshape(-1, *x.shape[-3:])
    count, channels, height, width = images.shape
    top, left = torch.randint(2 * padding + 1, (2, count), generator=generator)
    mirrored = torch.randint(2, (count,), generator=generator)
    result = torch.zeros_like(images)
    for i in range(count):
        padded = torch.zeros(channels, height + 2 * padding, width + 2 * padding)
        padded[:, padding : padding + height, padding : padding + width] = images[i]
        window = padded[:, top[i] : top[i] + height, left[i] : left[i] + width]
        result[i] = window.flip(-1) if mirrored[i] else window
    return result.reshape(x.shape)


@pytest.mark.parametrize("shape", [(7, 3, 8, 6), (2, 5, 1, 5, 5), (3, 32, 32)])
@pytest.mark.parametrize("padding", [0, 1, 4])
def test_crop_and_flip_equals_the_plain_loop(shape: tuple[int, ...], padding: int) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    before = x.clone()
    got = crop_and_flip(x, torch.Generator().manual_seed(2), padding)
    assert torch.equal(got, crop_and_flip_slowly(x, torch.Generator().manual_seed(2), padding))
    assert torch.equal(x, before)


def test_every_image_has_its_own_draw() -> None:
    x = torch.rand(1, 1, 8, 8).expand(64, 1, 8, 8)
    got = crop_and_flip(x, torch.Generator().manual_seed(0))
    assert len({image.numpy().tobytes() for image in got}) > 30


def test_negative_padding_is_refused() -> None:
    with pytest.raises(ValueError, match="padding must be at least 0, got -1"):
        crop_and_flip(torch.zeros(1, 1, 4, 4), None, padding=-1)
