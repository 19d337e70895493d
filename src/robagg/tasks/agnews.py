"""AG News on TF-IDF features."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from torch import nn

from robagg.data import Dataset
from robagg.data.text_features import load_features
from robagg.models import build
from robagg.tasks.base import Task
from robagg.training import Settings


@dataclass(frozen=True)
class AGNews(Task):
    """News of four kinds, TF-IDF reduced to 256 numbers, on a linear head of 1,028 parameters.

    n=20, b=32, mu=0.9, lambda=0.01, T=900. The rows are a field, so every run says which it used.

    Args:
        rows: the training rows: official (120,000) or subset20k (20,000 of them).
    """

    rows: str = "official"
    features: ClassVar[str] = "tfidf"
    settings: ClassVar[Settings] = Settings(rounds=900, batch=32, momentum=0.9, rate=0.01)

    def load(self, root: str | Path | None = None) -> Dataset:
        return load_features(self.features, self.rows, root)

    def build(self, dataset: Dataset, seed: int) -> nn.Module:
        return build("logistic", dataset.classes, dataset.shape, seed=seed)

    @property
    def title(self) -> str:
        return "AG News (TF-IDF)"
