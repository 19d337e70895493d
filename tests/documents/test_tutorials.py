"""Who follows a tutorial word by word ends with what it promises."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import robagg
from documents.scripts import load_script
from robagg.server import read_journal

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

follow = load_script("tutorial").follow

pytestmark = pytest.mark.slow


def test_a_rule_and_an_attack_of_ones_own_end_in_a_table_and_a_figure(tmp_path: Path) -> None:
    page = DOCS / "tutorial-paper.md"
    said = follow(page, tmp_path)
    assert "72 runs, 72 to do" in said and "72 runs: 72 done" in said
    assert re.search(r"cauchy +\d+\.\d from the honest mean", said) and "not finite" in said
    table = (tmp_path / "table.tex").read_text()
    shown = re.search(r"```latex\n(% digits.*?)```", page.read_text(), re.DOTALL)
    assert shown is not None
    assert find_names(table) == find_names(shown[1]), "the page must show the table that comes out"
    assert table.count(r"\textbf{") == shown[1].count(r"\textbf{") == 7
    worst = [float(cells[-1]) for cells in find_cells(table)]
    assert worst[0] == max(worst) > 60 > 20 > worst[-1], "the page says what its rule is worth"
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")
    assert "<!doctype html>" in (tmp_path / "report.html").read_text()
    paper = (tmp_path / "paper.tex").read_text()
    assert {"table.tex", "figure.pdf"} <= set(re.findall(r"\{([\w.]+)\}", paper))


def test_from_fedavg_to_protected(tmp_path: Path) -> None:
    pytest.importorskip("flwr", reason="needs the extra robagg[flower]")
    pytest.importorskip("ray", reason="needs flwr[simulation]")
    from flower.deployment import Deployment

    (tmp_path / "app").mkdir()
    with Deployment(tmp_path, 0, [str(Path(robagg.__file__).parents[1])]) as deployment:
        said = follow(
            DOCS / "tutorial-flower.md",
            tmp_path / "app",
            replace={"flwr run .": "flwr run . test"},
            environment=deployment.environment,
        )
    honest, attacked, looked_on, protected, own = map(float, re.findall(r"accuracy: ([\d.]+|nan)", said))
    assert honest > 75 and looked_on > 75 and protected > 75 and own > 75
    assert not attacked > 30
    journals = {name: read_journal(tmp_path / "app" / f"{name}.jsonl") for name in ("looked-on", "protected", "own")}
    for name, journal in journals.items():
        assert len(journal.rounds) == 8
        rejected = [len(report.rejected) for report in journal.rounds]
        assert sum(rejected) == 16 if name == "protected" else rejected, name
    assert all(report.observed for report in journals["looked-on"].rounds)
    assert "nnm(f=0.2) >> cauchy(f=0.2)" in journals["own"].rounds[0].rule


def find_cells(table: str) -> list[list[str]]:
    """The cells of each row, in plain text."""
    rows = [line for line in table.splitlines() if line.endswith(r"\\")][1:]
    return [[re.sub(r"\\textbf\{(.*)\}", r"\1", cell.strip()) for cell in row[:-2].split("&")] for row in rows]


def find_names(table: str) -> tuple[str, list[str]]:
    """The head of a table, and the names of its rows."""
    head = next(line for line in table.splitlines() if line.startswith("method"))
    return head, [cells[0] for cells in find_cells(table)]
