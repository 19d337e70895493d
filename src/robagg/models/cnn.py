"""The paper's network for MNIST and Fashion-MNIST."""

from __future__ import annotations

from collections import OrderedDict

from torch import nn


class CNN(nn.Sequential):
    """Two 3x3 convolutions and two dense layers, with dropout; log-probabilities out.

    For 28x28 images and ten labels it has 1,199,882 parameters. Cross-entropy on its output equals the negative
    log-likelihood, because log-softmax of log-probabilities changes nothing.

    Args:
        classes: number of labels.
        shape: (C, H, W) of an image.

    Example:
        >>> import torch
        >>> CNN()(torch.zeros(2, 1, 28, 28)).shape
        torch.Size([2, 10])
    """

    def __init__(self, classes: int = 10, shape: tuple[int, ...] = (1, 28, 28)) -> None:
        if len(shape) != 3 or min(shape[1:]) < 6:
            raise ValueError(
                f"images for the CNN must have the shape (C, H, W) with H and W at least 6, got {tuple(shape)}"
            )
        channels, height, width = shape
        features = 64 * ((height - 4) // 2) * ((width - 4) // 2)
        super().__init__(
            OrderedDict(
                conv1=nn.Conv2d(channels, 32, 3),
                relu1=nn.ReLU(),
                conv2=nn.Conv2d(32, 64, 3),  # the paper has no ReLU after it
                pool=nn.MaxPool2d(2),
                dropout1=nn.Dropout2d(0.25),
                flatten=nn.Flatten(),
                fc1=nn.Linear(features, 128),
                relu2=nn.ReLU(),
                dropout2=nn.Dropout(0.5),
                fc2=nn.Linear(128, classes),
                log_softmax=nn.LogSoftmax(dim=1),
            )
        )
