"""AG News on tiny files: reading, checking, shuffling, features and their cache."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch

from robagg.data import agnews, download, text_features
from robagg.data.text_features import load_features, locate_minilm, remember, standardise
from robagg.tasks.agnews import AGNews
from robagg.tasks.agnews_minilm import AGNewsMiniLM

WORDS = (("war", "peace"), ("goal", "match"), ("market", "shares"), ("chips", "software"))


def make_csv(count: int, start: int = 0) -> bytes:
    """Sorted by label, as files may be; descriptions have commas and quotes."""
    lines = []
    for label, (one, other) in enumerate(WORDS, start=1):
        for k in range(count):
            lines.append(f'"{label}","{one} number {start + k}","The ""{other}"" of {one}, {other} and {one}"')
    return ("\n".join(lines) + "\n").encode()


@pytest.fixture
def news(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with 40 training rows under the subset's name, gzipped, and 16 for the test; a cache of its own."""
    folder = tmp_path / "data" / "ag_news"
    folder.mkdir(parents=True)
    for name, content, packed in (("train_subset20k.csv", make_csv(10), True), ("test.csv", make_csv(4, 10), False)):
        (folder / (f"{name}.gz" if packed else name)).write_bytes(gzip.compress(content) if packed else content)
        monkeypatch.setitem(agnews.MD5, name, hashlib.md5(content).hexdigest())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder.parent


def test_texts_are_title_and_description_and_training_rows_are_shuffled_alike_each_time(news: Path) -> None:
    texts = agnews.read_texts("subset20k", news)
    assert texts.test[0] == 'war number 10. The "peace" of war, peace and war'
    assert texts.test_y.tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4
    assert len(texts.train) == 40 and texts.train_y.tolist() != sorted(texts.train_y.tolist())
    assert all(WORDS[y][0] in text for text, y in zip(texts.train, texts.train_y.tolist(), strict=True))
    again = agnews.read_texts("subset20k", news)
    assert again.train == texts.train and again.digest == texts.digest


def test_rows_that_are_not_there_are_named_with_those_that_are(news: Path) -> None:
    assert agnews.find_rows(news) == ["subset20k"]
    with pytest.raises(FileNotFoundError, match=r"robagg data get agnews.*rows='subset20k'"):
        agnews.read_texts("official", news)
    with pytest.raises(ValueError, match="must be one of official, subset20k"):
        agnews.read_texts("some", news)


def test_only_what_is_missing_is_downloaded_and_checked(news: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Pooch:
        HTTPDownloader = staticmethod(lambda progressbar: None)

        @staticmethod
        def retrieve(url: str, known_hash: str, fname: str, path: Path, downloader: object) -> Path:
            asked.append((url, known_hash))
            (path / fname).write_bytes(make_csv(12))
            return path / fname

    monkeypatch.setattr(download, "require", lambda *names: Pooch)
    monkeypatch.setitem(agnews.MD5, "train.csv", hashlib.md5(make_csv(12)).hexdigest())
    assert agnews.fetch_agnews(news, progress=False) == news / "ag_news"
    assert asked == [(agnews.HOME + "train.csv", f"md5:{agnews.MD5['train.csv']}")]
    assert agnews.find_rows(news) == ["official", "subset20k"]
    assert len(agnews.read_texts("official", news).train) == 48


def test_a_changed_file_is_refused(news: Path) -> None:
    path = news / "ag_news" / "test.csv"
    path.write_bytes(path.read_bytes().replace(b"war", b"way"))
    with pytest.raises(ValueError, match="as published, with the MD5"):
        agnews.read_texts("subset20k", news)
    (news / "ag_news" / "train_subset20k.csv.gz").write_bytes(gzip.compress(make_csv(10))[:40])
    with pytest.raises(ValueError, match="cut off or corrupt"):
        agnews.read_texts("subset20k", news)


def test_features_are_z_scored_by_the_training_rows_and_kept(news: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = AGNews(rows="subset20k")
    dataset = task.load(news)
    assert dataset.classes == 4 and len(dataset.train_y) == 40 and "subset20k" in dataset.name
    torch.testing.assert_close(dataset.train_x.mean(0), torch.zeros(dataset.shape), atol=1e-4, rtol=0)
    assert sum(p.numel() for p in task.build(dataset, 0).parameters()) == 4 * (dataset.shape[0] + 1)
    monkeypatch.setattr(text_features, "embed_tfidf", lambda texts: pytest.fail("computed again"))
    assert torch.equal(task.load(news).train_x, dataset.train_x)


def test_the_cache_goes_by_the_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = []

    def compute() -> tuple[np.ndarray, np.ndarray]:
        made.append(1)
        return np.full((2, 3), len(made), np.float32), np.zeros((1, 3), np.float32)

    assert remember("x", "a" * 64, compute)[0][0, 0] == remember("x", "a" * 64, compute)[0][0, 0] == 1
    assert remember("x", "b" * 64, compute)[0][0, 0] == 2 and len(made) == 2


def test_embeddings_once_kept_need_no_model(news: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = (np.random.default_rng(0).random((40, 384), np.float32), np.zeros((16, 384), np.float32))
    monkeypatch.setattr(text_features, "embed_minilm", lambda texts: vectors)
    load_features("minilm", "subset20k", news)
    monkeypatch.setattr(text_features, "embed_minilm", lambda texts: pytest.fail("computed again"))
    dataset = AGNewsMiniLM(rows="subset20k").load(news)
    assert sum(p.numel() for p in AGNewsMiniLM().build(dataset, 0).parameters()) == 1540


def test_a_folder_with_other_weights_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBAGG_MINILM", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"no model\.safetensors"):
        locate_minilm()
    for name in text_features.CHECKED:
        (tmp_path / name).write_bytes(b"something else")
    with pytest.raises(ValueError, match="a SHA-256 from 53aa5117 on"):
        locate_minilm()


def test_a_coordinate_that_never_varies_becomes_zero() -> None:
    x, test_x = standardise(torch.tensor([[1.0, 5.0], [3.0, 5.0]]), torch.tensor([[2.0, 9.0]]))
    assert x.tolist() == [[-1.0, 0.0], [1.0, 0.0]] and test_x[0, 0] == 0
