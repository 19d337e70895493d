"""Label counts: right in number, in print and in the picture."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from robagg.data import describe, draw, histogram
from robagg.splits import IID, Rho

LABELS = torch.arange(10).repeat(50)
SHARDS = Rho(0.8).split(LABELS, 12, 4, generator=torch.Generator().manual_seed(0))


def test_histogram_counts_every_sample_once() -> None:
    counts = histogram(LABELS, SHARDS, 10)
    assert counts.shape == (12, 10)
    assert counts.sum(1).tolist() == [len(shard) for shard in SHARDS]
    assert counts[:8].sum(0).tolist() == [50] * 10
    assert counts[3, 4] == sum(int(LABELS[i]) == 4 for i in SHARDS[3])


def test_labels_no_client_holds_are_counted_as_zero() -> None:
    assert histogram(torch.zeros(4, dtype=torch.int64), [torch.arange(4)], 3).tolist() == [[4, 0, 0]]


def test_labels_beyond_the_classes_are_refused() -> None:
    with pytest.raises(ValueError, match="labels must lie in 0 to 4, got 0 to 9"):
        histogram(LABELS, SHARDS, 5)


def test_the_table_has_a_line_a_client_and_marks_the_byzantine() -> None:
    lines = describe(LABELS, SHARDS, 10, f=4).splitlines()
    assert len(lines) == 13
    assert len({len(line) for line in lines}) == 1
    assert [("Byzantine" in line) for line in lines[1:]] == [False] * 8 + [True] * 4
    assert int(lines[1].split()[1]) == len(SHARDS[0])


@pytest.mark.parametrize("classes", [10, 30])
def test_the_picture_is_a_png_in_a_folder_made_for_it(tmp_path: Path, classes: int) -> None:
    pytest.importorskip("matplotlib")
    labels = torch.arange(300) % classes
    shards = IID().split(labels, 5, 1, generator=torch.Generator())
    path = draw(labels, shards, classes, tmp_path / "new" / "split.png", f=1, title="iid")
    assert path.read_bytes().startswith(b"\x89PNG")
