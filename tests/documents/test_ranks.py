"""The tables about several ranks say what the committed file says."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="the benchmarks are not part of this copy")
def test_the_tables_of_ranks_agree_with_the_committed_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    document = importlib.import_module("document_ranks")
    said = document.PAGE.read_text(encoding="utf-8")
    assert "| all_reduce |" in said and "| 4 ranks, ms |" in said
    assert said == document.write(said), "run `python benchmarks/document_ranks.py` and commit what it writes"
