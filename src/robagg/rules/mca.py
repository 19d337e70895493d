"""Maximum correntropy: rows pull by a Gaussian of their distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from robagg._core.checks import read_positive
from robagg._core.iterative import IterativeRule
from robagg._core.outcome import Pull
from robagg._core.sketch import Sketch, middle
from robagg._core.tolerance import F


@dataclass(frozen=True)
class MCA(IterativeRule):
    """Maximum correntropy aggregation, from the coordinate-wise median.

        v <- sum_i k_i x_i / sum_i k_i,    k_i = exp(-|x_i - v|^2 / (2 sigma^2))

    Args:
        f: how many rows may be Byzantine; used only to judge how many broken rows can be borne.
        sigma: the kernel's width; None takes the median of the distances in each step.
        iterations: steps of the loop.

    Example:
        >>> x = torch.tensor([[1.0], [1.1], [0.9], [1.0], [50.0]])
        >>> MCA()(x)
        tensor([1.])

    References:
        Luan, Li, Luo, Hu, Chen: Robust Federated Learning: Maximum Correntropy Aggregation Against Byzantine Attacks,
        IEEE TNNLS 2024.
    """

    f: F = None
    takes_weights: ClassVar[bool] = True
    sigma: float | None = None
    iterations: int = 10
    kernel: ClassVar[str | None] = "mca"
    needs_median: ClassVar[bool] = True
    length: ClassVar[str | None] = "sigma"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sigma is not None:
            read_positive(self, "sigma")

    def pull(self, sketch: Sketch, c: Tensor, squared: Tensor) -> Pull:
        width = self.sigma
        sigma = middle(squared.sqrt(), sketch.votes) if width is None else squared.new_full((), width * sketch.unit)
        # Measured from the nearest row, the largest exponent is 0: where all kernels would vanish the nearest row is
        # left. Width 0: the rows where v is already are the nearest, so v stays.
        least = sketch.voting(squared).min()
        k = sketch.count(((least - squared) / (2 * sigma.square())).nan_to_num(0.0).clamp(max=0.0).exp())
        return Pull(k / k.sum())
