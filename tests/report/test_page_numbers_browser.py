"""The page's numbers, as a reader copies them, are those of `robagg show` and `robagg plot`."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from report.reader import Reader
from report.records import make_record
from robagg.lab import Run, Store, load
from robagg.report import tabulate
from robagg.report.page import write_report
from robagg.report.plots import find_worst, unroll
from robagg.report.tables import Table

pytestmark = pytest.mark.slow
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CLIPBOARD = ["clipboard-read", "clipboard-write"]


def write(path: Path, runs: Iterable[tuple[Run, dict[str, Any]]]) -> tuple[Path, list[Any]]:
    """The page of runs with what came out of them, and their records."""
    with Store(path / "runs.jsonl") as store:
        for run, found in runs:
            store.append(make_record(run, points=3) | found)
    return write_report(store.path, path / "page.html", labels=False), load(store.path)


def copy(reader: Reader, figure: Any) -> dict[tuple[str, float], list[float]]:
    """A figure's mean and band by its lines and places."""
    figure.get_by_role("button", name="Copy data as CSV").click()
    playwright.expect(reader.page.locator("#status")).to_have_text("Copied as CSV")
    rows = [*csv.reader(reader.page.evaluate("navigator.clipboard.readText()").splitlines())][1:]
    return {(line, float(at)): [float(text) for text in numbers if text] for line, at, *numbers in rows}


def tell(table: Table, name: str = "{}") -> dict[tuple[str, float], Any]:
    return {
        (name.format(row), float(column)): pytest.approx([cell.mean, *(cell.interval or ())])
        for (row, column), cell in table.cells.items()
        if cell.values
    }


def test_worst_cases_are_drawn_where_all_attacks_were_run_and_bands_end_at_100(browser: Any, tmp_path: Path) -> None:
    levels = {
        ("tq", "ipm"): 90.0,
        ("tq", "bf"): 80.0,
        ("cm", "ipm"): 70.0,
        ("cm", "bf"): 97.0,
        ("krum", "ipm"): 95.0,
        ("mean", "bf"): 97.0,
        ("mean", "ipm"): 97.0,
    }
    runs = [
        (Run(rule=rule, attack=attack, f=f, seed=seed), {"accuracy": level + seed})
        for (rule, attack), level in levels.items()
        for f in (2, 4)
        for seed in (0, 1, 2)
        if (rule, attack, f) != ("cm", "ipm", 4)
    ]
    runs.append((Run(rule="tq", attack="bf", f=4, seed=3), {"status": "failed", "accuracy": None, "error": "x"}))
    page, records = write(tmp_path, runs)
    with pytest.warns(UserWarning, match="left out"):
        (table,) = find_worst(tabulate(records, columns="f"))
    with Reader(browser, page, permissions=CLIPBOARD) as reader:
        figure = reader.page.locator("#breakdown figure")
        assert copy(reader, figure) == tell(table)
        assert table.cells["mean", 2].interval == (pytest.approx(95.5, abs=0.1), 100.0)
        assert [cell.mean for place, cell in table.cells.items() if place[0] == "krum"] == [None, None]
        assert "at which a rule lacks an attack, or seeds of it failed, are left out" in figure.inner_text()
        words = reader.page.locator("#words").text_content()
        assert "The worst value of a rule over the attacks shown." in words


def test_a_cell_of_which_every_seed_diverged_ends_with_zeros(browser: Any, tmp_path: Path) -> None:
    whole = [(50, 99.0), (100, 99.0), (150, 99.0)]
    runs = [(Run(rule="tq", attack="bf", f=4, seed=seed), {"curve": whole}) for seed in (0, 1, 2)]
    runs += [
        (Run(rule="mean", attack="bf", f=4, seed=seed), {"curve": [(50, 10.0 + 80 * (seed > 0))], "diverged": 60})
        for seed in (0, 1, 2)
    ]
    runs += [(Run(rule="mean", attack="bf", f=4, settings={"rounds": 9}), {"curve": [(5, 1.0), (200, 9.0)]})]
    page, records = write(tmp_path, runs)
    (table,) = tabulate(unroll([record for record in records if record.get("rounds") is None]), columns="round")
    with Reader(browser, page, permissions=CLIPBOARD) as reader:
        reader.page.get_by_role("button", name="Clear all").click()
        reader.page.locator("[aria-label^='mean under bf: diverged']").click()
        reader.page.locator(".chips li", has_text="mean under bf").wait_for()
        found = copy(reader, reader.page.locator("#chosen figure").first)
        wanted = {
            place: numbers for place, numbers in tell(table, "{} under bf").items() if place[0].startswith("mean")
        }
        lines = {place: numbers for place, numbers in found.items() if "seed" not in place[0]}
        assert lines == wanted and sorted(at for _, at in lines) == [50.0, 100.0, 150.0]
        assert table.cells["mean", 50].interval == (0.0, 100.0) and table.cells["mean", 150].values == (0.0,) * 3


def test_a_run_that_diverged_counts_as_lost_only_where_its_attack_has_the_measure(browser: Any, tmp_path: Path) -> None:
    goal = {"metrics": {"attack_success": 30.0}}
    page, records = write(
        tmp_path,
        [
            (Run(rule="mean", attack="bf", f=4), {"diverged": 3}),
            (Run(rule="mean", attack="backdoor", f=4), goal),
            (Run(rule="mean", attack="backdoor", f=4, seed=1), {"diverged": 3}),
            (Run(rule="tq", attack="bf", f=4), {}),
            (Run(rule="tq", attack="backdoor", f=4), goal),
        ],
    )
    (table,) = tabulate(records, measures=["attack_success"])
    with Reader(browser, page) as reader:
        assert reader.cell("mean", "bf").inner_text() == "diverged", "its accuracy"
        reader.page.select_option("#measure", "attack_success")
        assert reader.cell("mean", "bf").inner_text() == "\u2013" and table.cells["mean", "bf"].word == "-"
        assert reader.cell("mean", "backdoor").inner_text() == "65.0 ± 49.5†"
        assert table.cells["mean", "backdoor"].values == (30.0, 100.0)
