"""The page of figures says what the committed files say, and every target has its row."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="the benchmarks are not part of this copy")


@pytest.fixture
def document(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(BENCHMARKS)
    before = set(sys.modules)
    yield importlib.import_module("document")
    for name in {path.stem for path in BENCHMARKS.glob("*.py")} - before:
        sys.modules.pop(name, None)


def test_the_page_agrees_with_the_committed_figures(document: ModuleType) -> None:
    said = document.PAGE.read_text(encoding="utf-8")
    assert said == document.write(), "run `python benchmarks/document.py` and commit what it writes"


def test_every_target_is_measured_and_judged_and_a_missed_one_is_explained(document: ModuleType) -> None:
    rows = [*document.list_cpu(), *document.list_gpu()]
    assert len(rows) >= 18
    for row in rows:
        assert row.judged in ("met", "missed"), f"{row.what}, {row.where}: {row.reached}"
        if not row.met:
            assert row.explain().startswith(("arithmetic", "bytes", "launches"))


def test_a_target_is_met_at_its_bound_and_missed_beyond_it(document: ModuleType) -> None:
    targets = sys.modules["targets"]

    def make(bound: float, *, at_least: bool) -> str:
        row = targets.Target("", "", "cpu-n20", lambda _: 2.0, bound, "x", lambda: "", at_least)
        return str(row.judged)

    assert [make(bound, at_least=False) for bound in (1.9, 2.0, 2.1)] == ["missed", "met", "met"]
    assert [make(bound, at_least=True) for bound in (1.9, 2.0, 2.1)] == ["met", "met", "missed"]


@pytest.mark.parametrize("path", sorted((BENCHMARKS / "results").glob("*.json")), ids=lambda path: path.stem)
def test_figures_name_no_folder_of_the_machine_they_come_from(path: Path) -> None:
    text = json.dumps(json.loads(path.read_text(encoding="utf-8")))
    assert re.search(r"[\s\"'(]/[a-z]+/", text) is None
