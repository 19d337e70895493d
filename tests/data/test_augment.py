"""Crops and flips equal a plain loop over the images."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from robagg.data import crop_and_flip
from robagg.tasks.cifar10 import CIFAR10


def crop_and_flip_slowly(x: Tensor, generator: torch.Generator, padding: int, border: tuple[float, ...] = ()) -> Tensor:
    images = x.reshape(-1, *x.shape[-3:])
    count, channels, height, width = images.shape
    top, left = torch.randint(2 * padding + 1, (2, count), generator=generator)
    mirrored = torch.randint(2, (count,), generator=generator)
    result = torch.zeros_like(images)
    for i in range(count):
        padded = torch.zeros(channels, height + 2 * padding, width + 2 * padding)
        padded += torch.tensor(border or [0.0]).view(-1, 1, 1)
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


@pytest.mark.parametrize("shape", [(7, 3, 8, 6), (2, 5, 3, 5, 5)])
def test_a_border_has_its_value_in_each_channel(shape: tuple[int, ...]) -> None:
    x, border = torch.randn(shape, generator=torch.Generator().manual_seed(1)), (-2.0, 0.5, 7.0)
    before = x.clone()
    for padding in (0, 3):
        got = crop_and_flip(x, torch.Generator().manual_seed(2), padding, border)
        assert torch.equal(got, crop_and_flip_slowly(x, torch.Generator().manual_seed(2), padding, border))
        assert torch.equal(x, before)
    with pytest.raises(ValueError, match="a value for each of 3 channels, got 2"):
        crop_and_flip(x, None, 3, (1.0, 2.0))


def test_crops_of_cifar10_can_have_black_borders() -> None:
    black = torch.tensor([-0.4914 / 0.2023, -0.4822 / 0.1994, -0.4465 / 0.2010]).view(-1, 1, 1)
    white = torch.ones(50, 3, 32, 32)
    crops = [CIFAR10(border=border).transform for border in ("black", "mean")]
    assert crops[0] is not None and crops[1] is not None
    on_black, on_mean = (crop(white, torch.Generator().manual_seed(0)) for crop in crops)
    assert (on_mean == 0).any()
    torch.testing.assert_close(on_black, torch.where(on_mean == 0, black, white))
    with pytest.raises(ValueError, match="border must be 'mean' or 'black', got 'white'"):
        CIFAR10(border="white")


def test_every_image_has_its_own_draw() -> None:
    x = torch.rand(1, 1, 8, 8).expand(64, 1, 8, 8)
    got = crop_and_flip(x, torch.Generator().manual_seed(0))
    assert len({image.numpy().tobytes() for image in got}) > 30


def test_negative_padding_is_refused() -> None:
    with pytest.raises(ValueError, match="padding must be at least 0, got -1"):
        crop_and_flip(torch.zeros(1, 1, 4, 4), None, padding=-1)
