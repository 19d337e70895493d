"""The page on the paper and the guides' tables of attack strengths say what the committed records say."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from robagg.paper import EXPERIMENTS, Experiment, Plan
from robagg.paper.board import gather
from robagg.paper.compare import compare

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
    cells = strengths.read_mnist()
    table = strengths.write_table(cells)
    worst = {rule: min(cells[rule, attack].mean for attack in strengths.ATTACKS) for rule in strengths.RULES}
    assert len(table.splitlines()) == 2 + len(worst) and "| TQ | 94.6±1.4 |" in table
    assert worst["nnm >> tq(floor=False)"] == max(worst.values())
    chain = {attack: cells["nnm >> tq(floor=False)", attack].values for attack in strengths.ATTACKS}
    weak, rest = chain.pop("ipm(c0=1.0)"), [accuracy for cell in chain.values() for accuracy in cell]
    pages = {name: read_words(name) for name in ("docs/engineers.md", "docs/flower.md")}
    ends = f"it ends at {min(weak):.0f} to {max(weak):.0f}, elsewhere at {min(rest):.0f} to {max(rest):.0f}, while"
    assert ends in pages["docs/engineers.md"]
    assert f"IPM with c0=1 left it {min(weak):.0f} to {max(weak):.0f}%" in pages["docs/flower.md"]
    seeds = [f"{accuracy:.0f}" for accuracy in cells["tq", "alie(z=0.75)"].values]
    assert f"TQ's three seeds end at {seeds[0]}, {seeds[1]} and {seeds[2]}" in pages["docs/engineers.md"]
    for page in ("engineers.md", "flower.md"):
        assert table in (ROOT / "docs" / page).read_text(encoding="utf-8"), "make paper-docs writes it"


def test_the_engineers_profile_is_that_of_the_records(strengths: ModuleType) -> None:
    table = strengths.write_profile(strengths.read_digits())
    assert len(table.splitlines()) == 9 and table in (ROOT / "docs" / "engineers.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name, found in EXPERIMENTS.items() if isinstance(found, Experiment)])
def test_the_papers_summary_is_that_of_the_records(name: str) -> None:
    """Runs, cells that are near the paper's, and claims that hold."""
    experiment = EXPERIMENTS[name]
    assert isinstance(experiment, Experiment)
    board = gather(experiment, Plan(), ROOT / "results" / "paper" / f"{name}.jsonl")
    pairs = [pair for (panel, _, _), pair in compare(board).items() if "(" not in panel]
    claims = board.check_claims()
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    (row,) = (line for line in page.splitlines() if f"(paper/{name}.md)" in line and line.startswith("|"))
    _, _, runs, _, near, held, _ = (cell.strip() for cell in row.split("|"))
    whole = board.found == board.wanted
    assert runs == (f"{board.found}" if whole else f"{board.found} of {board.wanted}")
    assert near == (f"{sum(pair.near for pair in pairs)} of {len(pairs)}" if pairs else "")
    assert held == (f"{sum(found.holds is True for found in claims)} of {len(claims)}" if claims else "")
