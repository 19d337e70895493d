"""The page on scale says what the committed figures say."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"


@pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="the benchmarks are not part of this copy")
def test_the_table_of_files_is_that_of_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    for name in ("memory", "peers", "aggregate", "texts", "timing"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    spec = importlib.util.spec_from_file_location("large_files", BENCHMARKS / "large_files.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    table = module.write_table(json.loads(module.COMMITTED.read_text()))
    assert table in (ROOT / "docs" / "scale.md").read_text(), "run `python benchmarks/large_files.py --table`"
