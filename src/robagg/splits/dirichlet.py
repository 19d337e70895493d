"""Each label is shared out by a draw from a Dirichlet distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from robagg.splits.base import Split


@dataclass(frozen=True)
class Dirichlet(Split):
    """Share out each label by proportions drawn from Dirichlet(alpha, ..., alpha) over the honest clients.

    Small alpha gives each label to few clients, large alpha comes close to IID. Sizes differ; a client left with
    nothing takes one sample from the largest.

    Args:
        alpha: concentration, above 0.

    Example:
        >>> labels = torch.arange(10).repeat(5)
        >>> shards = Dirichlet(alpha=0.1).split(labels, n=5, f=0, generator=torch.Generator().manual_seed(1))
        >>> sum(len(shard) for shard in shards), min(len(shard) for shard in shards) > 0
        (50, True)

    References:
        Hsu, Qi and Brown, "Measuring the effects of non-identical data distribution for federated visual
        classification", 2019, arXiv 1909.06335.
    """

    alpha: float = 0.5

    def __post_init__(self) -> None:
        if not (self.alpha > 0 and math.isfinite(self.alpha)):
            raise ValueError(f"alpha must be a finite number above 0, got {self.alpha}")

    def deal(self, labels: Tensor, h: int, generator: torch.Generator) -> list[Tensor]:
        # torch draws from a Dirichlet with the global generator only, and numpy's does not underflow at small alpha.
        seed = torch.randint(2**63 - 1, (1,), generator=generator, device=generator.device).item()
        rng = np.random.default_rng(int(seed))
        shards: list[list[int]] = [[] for _ in range(h)]
        for label in sorted(set(labels.tolist())):
            members = rng.permutation((labels == label).nonzero().flatten().numpy())
            shares = rng.dirichlet(np.full(h, float(self.alpha)))
            cuts = np.rint(shares.cumsum()[:-1] * len(members)).astype(np.int64)
            for shard, part in zip(shards, np.split(members, cuts), strict=True):
                shard.extend(part.tolist())
        for shard in shards:
            if not shard:
                shard.append(max(shards, key=len).pop())
        return [torch.tensor(shard, dtype=torch.int64) for shard in shards]
