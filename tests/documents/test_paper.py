"""The guides' tables of attack strengths say what the committed records say."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def strengths() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs" / "scripts")
        yield importlib.import_module("strengths")


def read_words(page: str) -> str:
    """A page as one line."""
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


def test_the_guides_tables_of_strengths_are_those_of_the_records(strengths: ModuleType) -> None:
    table, worst = strengths.write_table(), {rule: strengths.find_worst(rule) for rule in strengths.RULES}
    assert len(table.splitlines()) == 2 + len(worst) and "| TQ | 94.6±1.4 |" in table
    assert worst["nnm >> tq(floor=False)"] == max(worst.values())
    chain = {
        attack: strengths.read_cells()["nnm >> tq(floor=False)", attack].accuracies for attack in strengths.ATTACKS
    }
    weak, rest = chain.pop("ipm(c0=1.0)"), [accuracy for cell in chain.values() for accuracy in cell]
    pages = {name: read_words(name) for name in ("docs/engineers.md", "docs/flower.md")}
    ends = f"it ends at {min(weak):.0f} to {max(weak):.0f}, elsewhere at {min(rest):.0f} to {max(rest):.0f}, while"
    assert ends in pages["docs/engineers.md"]
    assert f"IPM with c0=1 left it {min(weak):.0f} to {max(weak):.0f}%" in pages["docs/flower.md"]
    seeds = [f"{accuracy:.0f}" for accuracy in strengths.read_cells()["tq", "alie(z=0.75)"].accuracies]
    assert f"TQ's three seeds end at {seeds[0]}, {seeds[1]} and {seeds[2]}" in pages["docs/engineers.md"]
    for page in ("engineers.md", "flower.md"):
        assert table in (ROOT / "docs" / page).read_text(encoding="utf-8"), "make paper-docs writes it anew"


def test_the_engineers_profile_is_that_of_the_records(strengths: ModuleType) -> None:
    table = importlib.import_module("strengths_digits").write_table()
    assert len(table.splitlines()) == 9 and table in (ROOT / "docs" / "engineers.md").read_text(encoding="utf-8")
