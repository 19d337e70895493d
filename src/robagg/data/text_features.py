"""Texts as vectors: TF-IDF with a truncated SVD, or frozen sentence embeddings; computed once and kept on disk."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from robagg.data.agnews import CLASSES, Texts, read_texts
from robagg.data.dataset import Dataset
from robagg.data.files import locate_user_cache
from robagg.data.optional import require

PURPOSE = "turning texts into vectors"
Features = NDArray[np.float32]
MINILM = "sentence-transformers/all-MiniLM-L6-v2"
CHECKED = {"model.safetensors": "53aa5117", "tokenizer.json": "be50c362"}
"""How the SHA-256 of the published files begins: other weights would be another task under the same name."""

RECIPES = {"tfidf": "words, sublinear, min_df 2, svd 256 from seed 0", "minilm": "all-MiniLM-L6-v2, as it comes"}
"""How features are made; kept ones that were made otherwise are not used."""


def load_features(kind: str, rows: str, root: str | Path | None = None) -> Dataset:
    """AG News as vectors, each coordinate with mean 0 and deviation 1 over the training rows.

    Args:
        kind: "tfidf" (256 numbers per text) or "minilm" (384).
        rows: which training rows; see `robagg.data.agnews.read_texts`.
        root: folder of the data.
    """
    kinds: dict[str, Callable[[Texts], tuple[Features, Features]]] = {"tfidf": embed_tfidf, "minilm": embed_minilm}
    texts = read_texts(rows, root)
    digest = hashlib.sha256(f"{texts.digest} {RECIPES[kind]}".encode()).hexdigest()
    train, test = remember(f"agnews-{kind}", digest, lambda: kinds[kind](texts))
    x, test_x = standardise(torch.from_numpy(train), torch.from_numpy(test))
    return Dataset(f"agnews, {kind}, {rows} rows", x, texts.train_y, test_x, texts.test_y, len(CLASSES))


def standardise(train: Tensor, test: Tensor) -> tuple[Tensor, Tensor]:
    """Both by the mean and deviation of the training rows; a coordinate that never varies becomes 0.

    Example:
        >>> standardise(torch.tensor([[1.0, 5.0], [3.0, 5.0]]), torch.tensor([[2.0, 5.0]]))
        (tensor([[-1.,  0.],
                 [ 1.,  0.]]), tensor([[0., 0.]]))
    """
    mean, deviation = train.mean(0), train.std(0, correction=0)
    deviation = deviation.where(deviation > 0, torch.ones_like(deviation))
    return (train - mean) / deviation, (test - mean) / deviation


def embed_tfidf(texts: Texts, size: int = 256) -> tuple[Features, Features]:
    """TF-IDF of single words, reduced by a truncated SVD; both are fitted on the training rows."""
    extraction: Any = require("sklearn.feature_extraction.text", "scikit-learn", PURPOSE, "text")
    decomposition: Any = require("sklearn.decomposition", "scikit-learn", PURPOSE, "text")
    words = extraction.TfidfVectorizer(sublinear_tf=True, min_df=2)
    seen = words.fit_transform(texts.train)
    svd = decomposition.TruncatedSVD(min(size, seen.shape[1] - 1), random_state=0)
    train, test = svd.fit_transform(seen), svd.transform(words.transform(texts.test))
    return train.astype(np.float32), test.astype(np.float32)


def embed_minilm(texts: Texts) -> tuple[Features, Features]:
    """Embeddings by all-MiniLM-L6-v2, from $ROBAGG_MINILM if that is set, else from its hub."""
    transformers: Any = require("sentence_transformers", "sentence-transformers", PURPOSE, "text")
    folder = locate_minilm()
    model = transformers.SentenceTransformer(str(folder))
    train, test = (
        model.encode(part, batch_size=64, show_progress_bar=True, convert_to_numpy=True)
        for part in (texts.train, texts.test)
    )
    return train.astype(np.float32), test.astype(np.float32)


def locate_minilm() -> Path:
    """The folder of the model's files, whose weights and tokenizer are the published ones."""
    given = os.environ.get("ROBAGG_MINILM")
    if given:
        folder = Path(given).expanduser()
    else:
        hub: Any = require("huggingface_hub", "sentence-transformers", PURPOSE, "text")
        wanted = ["*.json", "*.txt", "1_Pooling/*", "model.safetensors"]
        folder = Path(hub.snapshot_download(MINILM, allow_patterns=wanted))
    for name, begins in CHECKED.items():
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{folder} is no folder of all-MiniLM-L6-v2: it has no {name}")
        got = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        if not got.startswith(begins):
            raise ValueError(
                f"{folder / name} must be all-MiniLM-L6-v2's, with a SHA-256 from {begins} on, got {got[:8]}"
            )
    return folder


def remember(name: str, digest: str, compute: Callable[[], tuple[Features, Features]]) -> tuple[Features, Features]:
    """What was computed for this digest before; else compute it, and keep it in the user's cache folder.

    The digest is of the input and the recipe, so features of one are never taken for those of another.
    """
    path = locate_cache() / f"{name}-{digest[:16]}.npz"
    if path.is_file():
        with np.load(path) as kept:
            return kept["train"], kept["test"]
    train, test = compute()
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.stem}.{os.getpid()}.npz")
    np.savez(draft, train=train, test=test)
    draft.replace(path)  # another process may be doing the same
    return train, test


def locate_cache() -> Path:
    """Where features are kept: in the user's cache folder, since that of the data may not be ours to write to."""
    return locate_user_cache() / "features"
