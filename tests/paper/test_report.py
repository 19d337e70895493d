"""Tables, comparison and figures from stores of made-up records."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from robagg.cli.app import app
from robagg.lab.store import Store
from robagg.paper import Experiment, Only, Place, Plan, find
from robagg.paper import __main__ as command
from robagg.paper.axes import CNN_RULES
from robagg.paper.board import gather
from robagg.paper.compare import compare, find_paper_worst, list_misprints, summarise
from robagg.paper.figures import draw_board
from robagg.paper.latex import write_latex
from robagg.paper.numbers import find_name, read_numbers, read_printed_worst
from robagg.paper.pages import write_page

from .conftest import Fill, make_record

TABLE3 = find("table3")
assert isinstance(TABLE3, Experiment)
NUMBERS = read_numbers("table3")


def like_the_paper(place: Place) -> float:
    mean, deviation = NUMBERS[place.panel, find_name(place.row), place.column]
    return mean + (place.run.seed - 1) * deviation


def test_the_papers_numbers_are_all_there() -> None:
    assert [len(read_numbers(name)) for name in ("table3", "table4", "table5")] == [126, 84, 126]
    assert read_numbers("table5")["f=4", "TQ", "IPM"][0] == 68.24
    assert read_printed_worst("table3")["f=7", "Krum"] > 65.0
    with pytest.raises(ValueError, match="table3, table4, table5"):
        read_numbers("table9")


def test_a_run_that_diverged_counts_as_nothing(fill: Fill) -> None:
    store = fill(TABLE3, lambda place: None if (place.row, place.column) == ("CM", "IPM") else like_the_paper(place))
    with Store(store) as opened:
        for place in TABLE3.lay(Plan()):
            if (place.row, place.column) == ("CM", "IPM"):
                broke = place.run.seed == 0
                opened.append(make_record(place, None if broke else 99.9, diverged=7 if broke else None))
    board = gather(TABLE3, Plan(), store)
    assert board.find_worst("f=6", "CM") == board.cells["f=6", "CM", "IPM"]
    assert board.mean(("f=6", "CM", "IPM")) == pytest.approx(66.6)
    assert compare(board)["f=6", "CM", "IPM"].ours == pytest.approx(66.6)
    page = write_page(board)
    assert page.count("| 66.60 ± 57.68†<br>(") == 3 and page.count("| 66.60†<br>(") == 3
    assert "- † Some seeds diverged and count as 0." in page
    assert write_latex(board).count(r"66.60 & {\scriptsize$\pm$\,57.68") == 6


def test_a_rule_of_which_runs_failed_is_not_called_the_best(fill: Fill) -> None:
    store = fill(TABLE3, lambda place: None if (place.row, place.run.seed) == ("CM", 1) else 90.0, Plan(seeds=2))
    with Store(store) as opened:
        for place in TABLE3.lay(Plan(seeds=2, only=Only.parse("rule=CM,seed=1"))):
            opened.append(make_record(place, None) | {"status": "failed", "error": "no"})
    board = gather(TABLE3, Plan(seeds=2), store)
    assert board.cells["f=6", "CM", "LF"].failed == 1 and board.find_best_worst("f=6") == []


def test_where_all_rules_diverge_none_is_the_best(fill: Fill) -> None:
    store = fill(TABLE3, lambda place: None if place.column == "BF" else 90.0, Plan(seeds=1))
    with Store(store) as opened:
        for place in TABLE3.lay(Plan(seeds=1, only=Only.parse("attack=BF"))):
            opened.append(make_record(place, None, diverged=7))
    board = gather(TABLE3, Plan(seeds=1), store)
    assert board.find_worst("f=6", "TQ") == board.cells["f=6", "TQ", "BF"] and board.find_best_worst("f=6") == []


def test_six_rows_of_the_paper_do_not_print_their_minimum(fill: Fill) -> None:
    told = []
    for name in ("table3", "table4", "table5"):
        experiment = find(name)
        assert isinstance(experiment, Experiment)
        board = gather(experiment, Plan(seeds=1), fill(experiment, lambda place: 50.0, Plan(seeds=1)))
        told += list_misprints(board)
    assert sum(line.count("printed") for line in told) == 6
    assert "f=7 Krum" in told[0] and "65.00" in told[0]


def test_numbers_equal_to_the_papers_are_near_and_its_orderings_hold(fill: Fill) -> None:
    board = gather(TABLE3, Plan(), fill(TABLE3, like_the_paper))
    pairs = compare(board)
    assert len(pairs) == 18 * len(CNN_RULES) and all(pair.near for pair in pairs.values())
    assert "144 of 144 (100 %)" in summarise(pairs)[0]
    assert [found.holds for found in board.check_claims()] == [True]
    cell = board.cells["f=6", "TQ", "IPM"]
    mean, deviation = NUMBERS["f=6", "TQ", "IPM"]
    assert cell.mean == pytest.approx(mean) and cell.deviation == pytest.approx(deviation)
    assert board.find_best_worst("f=6") == ["TQ"]
    assert find_paper_worst(board, "f=7", "Krum") == 65.0


def test_a_panel_done_in_another_way_is_compared_with_the_papers_and_summed_up_apart(fill: Fill) -> None:
    table5, numbers = find("table5"), read_numbers("table5")
    assert isinstance(table5, Experiment)
    plan = Plan(seeds=1, only=Only.parse("f=4"))

    def off(place: Place) -> float:
        gap = -2.0 if "batches" in place.panel else 4.0 if (place.row, place.column) == ("TQ", "IPM") else 0.5
        return numbers["f=4", find_name(place.row), place.column][0] + gap

    board = gather(table5, plan, fill(table5, off, plan))
    pairs, other = compare(board), "f=4 (test batches)"
    assert len(pairs) == 48 and pairs[other, "TQ", "IPM"].difference == pytest.approx(-2)
    assert find_paper_worst(board, other, "TQ") == find_paper_worst(board, "f=4", "TQ") == 68.24
    told = summarise(pairs)
    assert "41 of 42" in told[0]
    assert "f=4 (test batches): within 1.5 points 0 of 6 (0 %), mean difference -2.00." in told
    assert told[-1] == "TQ, the largest difference: +4.00 at f=4, -2.00 at f=4 (test batches)."
    assert "f=4 (test batches)" in write_page(board) and "$f=4$ (test batches)" in write_latex(board)


def test_claims_do_not_wait_for_panels_done_in_another_way(fill: Fill) -> None:
    table5 = find("table5")
    assert isinstance(table5, Experiment)
    stated = Plan(seeds=1, only=Only.parse("panel=f=2,panel=f=3,panel=f=4"))
    board = gather(table5, Plan(seeds=1), fill(table5, lambda place: 50.0, stated))
    assert [found.holds for found in board.check_claims()] == [True, True, True]


def test_what_is_off_is_told_cell_by_cell(fill: Fill) -> None:
    def one_off(place: Place) -> float:
        return like_the_paper(place) - (30 if (place.row, place.column, place.panel) == ("TQ", "IPM", "f=6") else 0)

    board = gather(TABLE3, Plan(), fill(TABLE3, one_off))
    assert [spot for spot, pair in compare(board).items() if not pair.near] == [("f=6", "TQ", "IPM")]
    page = write_page(board)
    assert "**-30.00**" in page and page.count("**-") == 1
    assert "TQ has the best worst case for every f: **does not hold**" in page


def test_a_row_that_nobody_ran_leaves_an_ordering_open(fill: Fill) -> None:
    two = Plan(only=Only.parse("rule=TQ,rule=RFA"))
    store = fill(TABLE3, like_the_paper, two)
    board = gather(TABLE3, Plan(), store)
    (found,) = board.check_claims()
    assert found.holds is None and "cells without a run: 108" in str(found)
    assert board.find_best_worst("f=6") == [] and gather(TABLE3, two, store).find_best_worst("f=6") == ["TQ"]
    assert [found.holds for found in gather(TABLE3, two, store).check_claims()] == [True]


def test_figure_9_falls_against_figure_8_whose_store_lies_beside_its_own(fill: Fill) -> None:
    fig8, fig9 = find("fig8"), find("fig9")
    assert isinstance(fig8, Experiment) and isinstance(fig9, Experiment)

    def accuracy(place: Place) -> float:
        fall = {"rho=0.3": 0.0, "rho=0.4": 5.0, "rho=0.5": 10.0}[place.panel]
        return 70.0 + 10 * (place.row == "TQ") - place.run.f - fall

    store = fill(fig9, accuracy)
    assert [found.holds for found in gather(fig9, Plan(), store).check_claims()] == [True, True, None]
    other = fill(fig8, accuracy)
    board = gather(fig9, Plan(only=Only.parse("f=12")), store)
    assert [found.holds for found in board.check_claims()] == [True, True, True]
    assert {panel for panel, _, _ in board.means()} == {"rho=0.3", "rho=0.4", "rho=0.5"}
    other.unlink()
    fill(fig8, lambda place: accuracy(place) - 20 * (place.row == "CM"))
    assert "rho=0.3 CM 44.0 to 58.0" in write_page(gather(fig9, Plan(), store))


def test_one_store_may_hold_both_figures(fill: Fill) -> None:
    fig8, fig9 = find("fig8"), find("fig9")
    assert isinstance(fig8, Experiment) and isinstance(fig9, Experiment)
    store = fill(fig9, lambda place: 50.0)
    with Store(store) as opened:
        for place in fig8.lay():
            opened.append(make_record(place, 60.0))
    assert gather(fig9, Plan(), store).check_claims()[-1].holds


def test_missing_and_diverged_runs_are_shown_as_such(fill: Fill, tmp_path: Path) -> None:
    store = fill(TABLE3, lambda place: None if place.column == "LF" and place.row == "TQ" else 90.0, Plan(seeds=1))
    with Store(store) as opened:
        for place in TABLE3.lay(Plan(seeds=1, only=Only.parse("rule=TQ,attack=LF,f=5"))):
            opened.append(make_record(place, None, diverged=7))
    board = gather(TABLE3, Plan(seeds=1), store)
    assert (board.wanted - board.found) == 2
    assert board.find_worst("f=5", "TQ") == board.cells["f=5", "TQ", "LF"]
    assert board.find_worst("f=6", "TQ") is None
    assert board.find_best_worst("f=5") and board.find_best_worst("f=6") == [], "TQ's may be better"
    page = write_page(board)
    assert "diverged" in page and f"{board.found} of {board.wanted} runs are there" in page
    assert "The best worst case is bold." in page
    none = write_page(gather(TABLE3, Plan(seeds=1, only=Only.parse("f=6")), store))
    assert "the paper's in brackets." in none and "The best worst case is bold." not in none


def test_the_latex_is_booktabs_in_the_papers_order_with_the_best_worst_case_bold(fill: Fill) -> None:
    text = write_latex(gather(TABLE3, Plan(), fill(TABLE3, like_the_paper)))
    for part in (r"\toprule", r"\bottomrule", r"\caption{", r"\label{tab:table3}", "$f=5$", r"\scriptsize$\pm$"):
        assert part in text
    assert text.count(r"\midrule") == text.count(r"\textbf{") == 3
    assert r"\textbf{95.03}" in text
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {line.count("&") for line in rows[1:]} == {15}, "a mean and a deviation for six attacks and the worst case"
    assert r"\multicolumn{2}{c}{GA}" in rows[0] and rows[-1].split("&")[1].strip() == "TQ"
    assert "$z=0.253$ ($f=5$), 0.366 ($f=6$), 0.502 ($f=7$)" in text
    assert r"\caption{MNIST, $\rho=0.5$: " in text and "The best worst case is bold." in text


def test_cells_without_a_number_fill_their_place_in_the_latex(fill: Fill) -> None:
    store = fill(TABLE3, lambda place: None if place.column == "LF" and place.row == "TQ" else 90.0, Plan(seeds=2))
    with Store(store) as opened:
        for place in TABLE3.lay(Plan(seeds=2, only=Only.parse("rule=TQ,attack=LF,f=5"))):
            opened.append(make_record(place, None, diverged=7))
    text = write_latex(gather(TABLE3, Plan(seeds=2), store))
    f5, f6, _ = (line for line in text.splitlines() if " & TQ & " in line)
    assert f5.count(r"\multicolumn{2}{c}{diverged}") == 2, "nothing is worse"
    assert f6.count(r"\multicolumn{2}{c}{--}") == 2, "the cell, and the worst case that is not known"
    single = write_latex(gather(TABLE3, Plan(seeds=1), store))
    assert {line.count("&") for line in single.splitlines() if line.endswith(r"\\")} == {8}


@pytest.mark.parametrize("name", ["fig2", "fig3", "fig5", "fig6", "fig8"])
def test_figures_are_drawn_as_png_and_pdf(name: str, fill: Fill, tmp_path: Path) -> None:
    experiment = find(name)
    assert isinstance(experiment, Experiment)
    plan = Plan(quick=True)
    store = fill(experiment, lambda place: 60.0 + len(place.row), plan)
    paths = draw_board(gather(experiment, plan, store), tmp_path / "out")
    assert [path.name for path in paths] == [f"{name}.quick.png", f"{name}.quick.pdf"]
    assert paths[0].read_bytes().startswith(b"\x89PNG") and paths[1].read_bytes().startswith(b"%PDF")


def test_the_command_shows_a_store_without_running_anything(
    fill: Fill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "perform", lambda *a, **k: pytest.fail("something was run"))
    store, runner = fill(TABLE3, like_the_paper), CliRunner()
    shown = ["paper", "table3", "--no-run", "--store", str(store)]
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert runner.invoke(app, shown).exit_code == 0
    assert sorted(tmp_path.rglob("*")) == before
    done = runner.invoke(app, [*shown, "--out", "out"])
    assert done.exit_code == 0, done.output
    assert "TQ has the best worst case for every f: holds (3 of 3)" in done.output
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"table3.md", "table3.tex"}
    missing = runner.invoke(app, ["paper", "table3", "--no-run", "--store", str(tmp_path / "no.jsonl")])
    assert isinstance(missing.exception, FileNotFoundError)
    assert "fig3" in runner.invoke(app, ["paper", "list"]).output


def test_a_quick_look_is_marked_in_every_output(fill: Fill, tmp_path: Path) -> None:
    plan = Plan(quick=True)
    board = gather(TABLE3, plan, fill(TABLE3, lambda place: 90.0, plan))
    assert board.name == "table3.quick" and compare(board) == {}
    for text in (board.title, write_page(board), write_latex(board)):
        assert "QUICK LOOK on digits" in text
    fewer = gather(TABLE3, Plan(rounds=50), fill(TABLE3, lambda place: 90.0, Plan(rounds=50)))
    assert "50 rounds instead of the paper's" in fewer.title


def test_rows_of_which_nothing_is_there_are_left_out_and_named(fill: Fill) -> None:
    def some(place: Place) -> float | None:
        lacks = place.row == "Krum" or place.panel == "f=7" or (place.panel == "f=5" and place.row in ("RFA", "TM"))
        return None if lacks else 90.0

    board = gather(TABLE3, Plan(), fill(TABLE3, some))
    assert board.absent == ("f=7", "f=5 RFA, TM", "Krum")
    assert "Krum" not in board.rows("f=6") and "RFA" in board.rows("f=6") and "RFA" not in board.rows("f=5")
    assert board.wanted == board.found == 3 * (96 - 12 - 12)
