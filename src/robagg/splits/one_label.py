"""The hardest split: a client knows one label only."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import torch
from torch import Tensor

from robagg.splits.base import Split, shuffle, sizes_of


@dataclass(frozen=True)
class OneLabel(Split):
    """Honest client i holds label i (modulo the number of labels); clients of one label share it evenly.

    With fewer honest clients than labels, the labels left over are held by no honest client.

    Example:
        >>> labels = torch.tensor([2, 0, 1, 0, 1, 2])
        >>> shards = OneLabel().split(labels, n=3, f=0, generator=torch.Generator())
        >>> [labels[shard].tolist() for shard in shards]
        [[0, 0], [1, 1], [2, 2]]
    """

    def deal(self, labels: Tensor, h: int, generator: torch.Generator) -> list[Tensor]:
        present = sorted(set(labels.tolist()))
        holders = Counter(present[i % len(present)] for i in range(h))
        order = shuffle(len(labels), generator)
        parts = {}
        for label, count in holders.items():
            members = order[labels[order] == label]
            if len(members) < count:
                raise ValueError(
                    f"label {label} must have a sample for each of its {count} honest clients, got {len(members)}"
                )
            parts[label] = iter(torch.split(members, sizes_of(len(members), count)))
        return [next(parts[present[i % len(present)]]) for i in range(h)]
