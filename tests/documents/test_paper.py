"""The paper's page and the README's table say what the committed records say."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def paper() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs" / "scripts")
        yield importlib.import_module("paper")


def test_the_page_and_the_readme_agree_with_the_records(paper: ModuleType) -> None:
    boards = paper.read_boards()
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    assert page == "\n\n".join(paper.write_overview(boards)) + "\n", "make paper-docs writes it anew"
    assert paper.write_table(boards["table3"], "f=6") in (ROOT / "README.md").read_text(encoding="utf-8")


def test_time_in_which_runs_share_a_device_counts_once(paper: ModuleType) -> None:
    def record(end: str, seconds: float) -> dict[str, object]:
        return {"finished": f"2030-01-01T00:{end}+00:00", "seconds": seconds}

    together = [record("00:10", 10.0), record("00:12", 8.0), record("00:05", 2.0)]
    assert paper.measure_wall(together) == 12.0
    assert paper.measure_wall([*together, record("30:00", 5.0)]) == 17.0


def test_what_has_no_runs_is_not_told(paper: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = importlib.import_module("changes")
    pairs = paper.compare(paper.read_boards()["table5"])
    assert "GroupNorm" in changes.tell_changes(changes.CIFAR, pairs)
    assert changes.tell_changes(changes.CIFAR, {}) == ""
    monkeypatch.setattr(changes, "PROTOCOL", tmp_path / "none.jsonl")
    assert changes.tell_changes(changes.CIFAR, pairs) == ""


def test_the_readme_says_of_cifar10_what_the_records_say(paper: ModuleType) -> None:
    boards = paper.read_boards()
    short, stated = (paper.compare(boards[name]) for name in ("table5-short", "table5"))
    most = max(abs(pair.difference) for (_, row, _), pair in short.items() if row == "TQ (from the last)")
    near = sum(abs(pair.difference) <= 3 for (panel, row, _), pair in stated.items() if (panel, row) == ("f=4", "TQ"))
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert most < 2 and "TQ's row is within 2 points of the paper's when TQ starts from the last aggregate" in text
    assert near == 4 and "four attacks of six are within 3 points" in text
