"""AG News on frozen sentence embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from robagg.tasks.agnews import AGNews


@dataclass(frozen=True)
class AGNewsMiniLM(AGNews):
    """News of four kinds, frozen all-MiniLM-L6-v2 embeddings (384), on a linear head of 1,540 parameters.

    Trained as `agnews`. The embeddings are computed once (ten minutes on two cores for 27,600 texts) and kept; the
    model comes from its hub, or from the folder that $ROBAGG_MINILM names.

    Args:
        rows: the training rows: official (120,000) or subset20k (20,000 of them).
    """

    features: ClassVar[str] = "minilm"

    @classmethod
    def name(cls) -> str:
        return "agnews-minilm"

    @property
    def title(self) -> str:
        return "AG News (MiniLM)"
