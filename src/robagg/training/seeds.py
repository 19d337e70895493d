"""One generator per purpose, so that changing the attack does not change the batches."""

from __future__ import annotations

import hashlib

import torch


def derive(seed: int, purpose: str) -> int:
    """A seed for one purpose (split, weights, batches, dropout, attack, ...) of a run."""
    digest = hashlib.sha256(f"{purpose}:{seed}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def generator(seed: int, purpose: str, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator for one purpose of a run.

    >>> bool(torch.rand(1, generator=generator(0, "split")) == torch.rand(1, generator=generator(0, "split")))
    True
    """
    return torch.Generator(device).manual_seed(derive(seed, purpose))
