"""The paper's page and the guides' tables say what the committed records say."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from robagg.paper.compare import Pair

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def paper() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs" / "scripts")
        yield importlib.import_module("paper")


def read_words(page: str) -> str:
    """A page as one line."""
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


def test_the_page_agrees_with_the_records(paper: ModuleType) -> None:
    boards = paper.read_boards()
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    assert page == "\n\n".join(paper.write_overview(boards)) + "\n", "make paper-docs writes it anew"


def test_the_guides_tables_of_strengths_are_those_of_the_records(paper: ModuleType) -> None:
    strengths = importlib.import_module("strengths")
    table, worst = strengths.write_table(), {rule: strengths.find_worst(rule) for rule in strengths.RULES}
    assert len(table.splitlines()) == 2 + len(worst) and "| TQ | 94.6±1.4 |" in table
    assert worst["nnm >> tq"] == max(worst.values())
    chain = {attack: strengths.read_cells()["nnm >> tq", attack].accuracies for attack in strengths.ATTACKS}
    weak, rest = chain.pop("ipm(c0=1.0)"), [accuracy for cell in chain.values() for accuracy in cell]
    pages = {name: read_words(name) for name in ("docs/engineers.md", "docs/flower.md")}
    ends = f"it ends at {min(weak):.0f} to {max(weak):.0f}, elsewhere at {min(rest):.0f} to {max(rest):.0f}, while"
    assert ends in pages["docs/engineers.md"]
    assert f"IPM with c0=1 left it {min(weak):.0f} to {max(weak):.0f}%" in pages["docs/flower.md"]
    seeds = [f"{accuracy:.0f}" for accuracy in strengths.read_cells()["tq", "alie(z=0.75)"].accuracies]
    assert f"TQ's three seeds end at {seeds[0]}, {seeds[1]} and {seeds[2]}" in pages["docs/engineers.md"]
    for page in ("engineers.md", "flower.md"):
        assert table in (ROOT / "docs" / page).read_text(encoding="utf-8"), "make paper-docs writes it anew"


def test_the_engineers_profile_is_that_of_the_records(paper: ModuleType) -> None:
    table = importlib.import_module("strengths_digits").write_table()
    assert len(table.splitlines()) == 8 and table in (ROOT / "docs" / "engineers.md").read_text(encoding="utf-8")


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


def test_cells_that_do_not_match_are_laid_out_by_panel_rule_and_attack(paper: ModuleType) -> None:
    cells = {("f=5", "CM", "LF"): Pair(80.0, 90.0, 1.0), ("f=6", "CM", "GA"): Pair(70.04, 60.0, 1.0)}
    head, _, *lines = importlib.import_module("mismatches").lay_out(cells).strip().splitlines()
    assert head == "| at | rule | GA | LF |"
    assert lines == ["| f=5 | CM |  | 80.0 (90.0) |", "| f=6 | CM | 70.0 (60.0) |  |"]
