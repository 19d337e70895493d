"""ResNet-20 for 32x32 colour images."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional


class Block(nn.Module):
    """Two 3x3 convolutions beside a shortcut, which is a projection (1x1 convolution, BatchNorm) where sizes change.

    Example:
        >>> import torch
        >>> Block(16, 32, stride=2)(torch.zeros(2, 16, 8, 8)).shape
        torch.Size([2, 32, 4, 4])
    """

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.shortcut = nn.Sequential()
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class ResNet20(nn.Module):
    """Three stages of three blocks, 16, 32 and 64 channels wide; logits out.

    For three channels and ten labels it has 272,474 parameters.

    Args:
        classes: number of labels.
        shape: (C, H, W) of an image.

    Example:
        >>> import torch
        >>> ResNet20()(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])

    References:
        He, Zhang, Ren and Sun, "Deep residual learning for image recognition", CVPR 2016, arXiv 1512.03385.
    """

    def __init__(self, classes: int = 10, shape: tuple[int, ...] = (3, 32, 32)) -> None:
        super().__init__()
        if len(shape) != 3 or min(shape[1:]) < 4:
            raise ValueError(
                f"images for ResNet-20 must have the shape (C, H, W) with H and W at least 4, got {tuple(shape)}"
            )
        self.conv = nn.Conv2d(shape[0], 16, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(16)
        self.stage1 = nn.Sequential(Block(16, 16, 1), Block(16, 16, 1), Block(16, 16, 1))
        self.stage2 = nn.Sequential(Block(16, 32, 2), Block(32, 32, 1), Block(32, 32, 1))
        self.stage3 = nn.Sequential(Block(32, 64, 2), Block(64, 64, 1), Block(64, 64, 1))
        self.fc = nn.Linear(64, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.bn(self.conv(x)))
        y = self.stage3(self.stage2(self.stage1(y)))
        logits: Tensor = self.fc(y.mean(dim=(2, 3)))
        return logits
