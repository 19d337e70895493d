"""The page in a real browser: what a reader sees, clicks, hears and saves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from report.access import find_violations
from report.reader import DESK, PHONE, Reader
from report.records import HOSTILE, fill_large, fill_small, make_record
from robagg.lab import Run, Store, load
from robagg.report import tabulate
from robagg.report.page import write_report

pytestmark = pytest.mark.slow
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    return write_report(fill_small(folder / "runs.jsonl"), folder / "report.html")


def fill_cells(path: Path, cells: dict[tuple[str, str], list[float]]) -> Path:
    """The page of a store with such accuracies, of seeds 0, 1, ..., by rule and attack."""
    with Store(path.with_suffix(".jsonl")) as store:
        for (rule, attack), values in cells.items():
            for seed, value in enumerate(values):
                record = make_record(Run(rule=rule, attack=attack, f=4, seed=seed), points=5)
                store.append(record | {"accuracy": value, "curve": [(50, value / 2), (100, value)]})
    return write_report(store.path, path, labels=False)


def test_it_opens_from_a_file_without_an_error_and_tells_what_matters_first(browser: Any, small: Path) -> None:
    with Reader(browser, small) as reader:
        assert "highest worst case" in reader.page.inner_text("#summary")
        assert reader.page.locator("table.results").count() == 3
        assert reader.page.locator("table.results").last.locator("tbody tr").count() == 4


def test_an_empty_store_is_said_to_be_empty(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "runs.jsonl").write_bytes(b"")
    with Reader(browser, write_report(tmp_path / "runs.jsonl", tmp_path / "report.html")) as reader:
        assert "The store has no runs" in reader.page.inner_text("#troubles")


def test_names_that_try_to_be_markup_are_shown_and_not_run(browser: Any, small: Path) -> None:
    with Reader(browser, small) as reader:
        assert HOSTILE in reader.page.inner_text("#results")
        assert HOSTILE in reader.page.inner_text("#troubles")
        assert reader.page.evaluate("window.stolen") is None
        reader.cell(HOSTILE, f"ipm{HOSTILE}", table=0).click()
        playwright.expect(reader.page.locator(".chips li")).to_have_count(2)
        assert reader.page.evaluate("window.stolen") is None


def test_filters_and_search_leave_what_matches(browser: Any, small: Path) -> None:
    with Reader(browser, small) as reader:
        page = reader.page
        page.locator("summary", has_text="attack:").click()
        page.locator("input[data-facet='attack'][value='bf']").check()
        heads = page.locator("table.results").first.locator("thead th").all_inner_texts()
        assert [head.strip(" ▼▲") for head in heads] == ["rule", "bf", "worst case", "mean over attacks"]
        page.get_by_role("button", name="Clear filters").click()
        page.fill("#search", "nnm f 6")
        assert page.locator("table.results tbody th").all_inner_texts() == ["nnm >> tq"]
        page.fill("#search", "nothing of that name")
        assert "No run matches" in page.inner_text("#results")


def test_tables_have_their_columns_in_one_order_and_what_diverged_counts_as_nothing(
    browser: Any, tmp_path: Path
) -> None:
    runs = [Run(rule="tq", attack=attack, f=4, seed=0) for attack in ("none", "bf", "ipm")]
    runs += [Run(rule="tq", attack=attack, f=6, seed=seed) for attack in ("ipm", "none", "bf") for seed in (0, 1)]
    with Store(tmp_path / "runs.jsonl") as store:
        for run in runs:
            wild = run.f == 6 and run.attack != "bf" and (run.attack == "ipm" or run.seed == 0)
            store.append(make_record(run, points=5) | {"accuracy": 80.0, "diverged": 7 if wild else None})
    with Reader(browser, write_report(tmp_path / "runs.jsonl", tmp_path / "report.html")) as reader:
        for k in (0, 1):
            heads = reader.page.locator("table.results").nth(k).locator("thead th").all_inner_texts()
            assert [head.strip(" ▼▲") for head in heads[1:4]] == ["none", "bf", "ipm"]
        assert reader.cell("tq", "none", table=1).inner_text() == "40.0 ± 56.6†"
        assert reader.cell("tq", "ipm", table=1).inner_text() == "diverged"
        row = reader.page.locator("table.results").nth(1).locator("tbody tr").first.locator("td")
        assert row.all_inner_texts()[-2:] == ["diverged", "40.0"]
        assert "† Some seeds diverged and count as 0." in reader.page.inner_text("#results")


def test_a_rule_is_called_best_only_where_the_intervals_over_the_seeds_allow_it(browser: Any, tmp_path: Path) -> None:
    apart = {"tq": [81.0, 82.0, 83.0], "cm": [60.0, 62.0, 64.0], "mean": [10.0, 10.0, 10.0]}
    noisy = apart | {"cm": [66.0, 78.0, 86.0]}
    few = {rule: values[:2] for rule, values in apart.items()}
    for name, values, summary, badges in (
        ("apart", apart, "tq has the best worst case: 82.0 ± 2.5 % under bf.", ["best"]),
        (
            "noisy",
            noisy,
            "tq has the highest worst case, 82.0 ± 2.5 % under bf, within noise of cm.",
            ["highest", "within noise"],
        ),
        ("few", few, "tq has the highest worst case, 81.5 ± 0.7 % under bf; with fewer than three seeds", ["highest"]),
    ):
        cells = {(rule, "bf"): found for rule, found in values.items()}
        cells |= {(rule, "none"): [95.0] * len(found) for rule, found in values.items()}
        with Reader(browser, fill_cells(tmp_path / f"{name}.html", cells)) as reader:
            assert reader.page.inner_text("#summary").startswith(summary)
            assert reader.page.locator(".badge").all_inner_texts() == badges


def test_over_many_tables_wins_beyond_noise_are_counted_apart(browser: Any, tmp_path: Path) -> None:
    with Store(tmp_path / "runs.jsonl") as store:
        for f in (2, 3, 4, 5, 6):
            for rule, level in (("tq", 80.0), ("cm", 79.0 if f > 3 else 60.0)):
                for seed in (0, 1, 2):
                    record = make_record(Run(rule=rule, attack="bf", f=f, seed=seed), points=3)
                    store.append(record | {"accuracy": level + seed})
    with Reader(browser, write_report(store.path, tmp_path / "page.html", labels=False)) as reader:
        told = reader.page.inner_text("#summary")
        assert told.startswith(
            "tq has the highest worst case in 5 of 5 tables, in 2 of them beyond the noise of the seeds"
        )


def test_curves_are_means_with_bands_and_what_diverged_counts_as_0_from_there_on(browser: Any, tmp_path: Path) -> None:
    page = fill_cells(
        tmp_path / "page.html", {("tq", "bf"): [80.0, 84.0, 88.0], ("cm", "bf"): [50.0, 60.0], ("mean", "bf"): [10.0]}
    )
    with Store(tmp_path / "page.jsonl") as store:
        for seed, curve in enumerate([[(50, 30.0), (100, 60.0)], [(50, 30.0)]]):
            record = make_record(Run(rule="krum", attack="bf", f=4, seed=seed), points=5, diverged=70 if seed else None)
            store.append(record | {"curve": curve})
    page = write_report(store.path, page, labels=False)
    with Reader(browser, page, permissions=["clipboard-read", "clipboard-write"]) as reader:
        figure = reader.page.locator("figure").first
        assert figure.locator("path.band").count() == 1, "the cell that is chosen at first"
        for rule in ("cm", "mean", "krum"):
            reader.cell(rule, "bf").click()
            reader.page.locator(".chips li", has_text=f"{rule} under").wait_for()
        playwright.expect(figure.locator("path.band")).to_have_count(3)
        figure.get_by_role("button", name="Copy data as CSV").click()
        playwright.expect(reader.page.locator("#status")).to_have_text("Copied as CSV")
        rows = [line.split(",") for line in reader.page.evaluate("navigator.clipboard.readText()").splitlines()]
        assert rows[0] == ["line", "round", "test accuracy (%)", "from", "to"]
        half = 4.30 * 4 / 3**0.5
        wanted = {"tq": (84.0, 84 - half, 84 + half), "cm": (55.0, 50.0, 60.0), "krum": (30.0, 0.0, 60.0)}
        for rule, numbers in wanted.items():
            row = next(row for row in rows if row[0].startswith(rule) and row[1] == "100")
            assert [float(text) for text in row[2:]] == pytest.approx(numbers)


def test_rules_are_drawn_over_f_with_their_worst_case_or_one_attack(browser: Any, tmp_path: Path) -> None:
    levels = {("tq", 2): (90.0, 80.0), ("tq", 4): (85.0, 70.0), ("cm", 2): (60.0, 95.0), ("cm", 4): (95.0, 40.0)}
    with Store(tmp_path / "runs.jsonl") as store:
        for (rule, f), values in levels.items():
            for attack, level in zip(("ipm", "bf"), values, strict=True):
                for seed in (0, 1, 2):
                    record = make_record(Run(rule=rule, attack=attack, f=f, seed=seed), points=3)
                    store.append(record | {"accuracy": level + seed})
    page = write_report(store.path, tmp_path / "page.html", labels=False)
    with Reader(browser, page, permissions=["clipboard-read", "clipboard-write"]) as reader:
        figure = reader.page.locator("#breakdown figure")
        assert figure.locator("h4").inner_text() == "digits, rho 0.5, n 20 over f"
        half = 4.30 / 3**0.5
        for under, wanted in (
            ("worst case", {"tq": (81.0, 71.0), "cm": (61.0, 41.0)}),
            ("ipm", {"tq": (91.0, 86.0), "cm": (61.0, 96.0)}),
        ):
            reader.page.select_option("#under", under)
            assert figure.locator("path.band").count() == 2
            figure.get_by_role("button", name="Copy data as CSV").click()
            rows = [line.split(",") for line in reader.page.evaluate("navigator.clipboard.readText()").splitlines()]
            assert rows[0] == ["line", "f", "accuracy (%)", "from", "to"] and len(rows) == 5
            for rule, f, *numbers in rows[1:]:
                mean = wanted[rule][int(f) // 2 - 1]
                assert [float(text) for text in numbers] == pytest.approx((mean, mean - half, mean + half))
        reader.page.locator("summary", has_text="f:").first.click()
        reader.page.locator("input[data-facet='f'][value='2']").check()
        assert reader.page.inner_html("#breakdown") == "", "of one f there is no line"


def test_a_table_shows_any_measure_with_what_stands_behind_it(browser: Any, tmp_path: Path) -> None:
    records = [make_record(Run(rule="tq", attack="bf", f=4, seed=seed), points=20) for seed in (0, 1, 2)]
    with Store(tmp_path / "runs.jsonl") as store:
        for record in records:
            store.append(record)
    cell = tabulate(load(store.path), measures=["precision"])[0].cells["tq", "bf"]
    with Reader(browser, write_report(store.path, tmp_path / "page.html", labels=False)) as reader:
        reader.page.select_option("#measure", "precision")
        assert reader.cell("tq", "bf").inner_text() == f"{cell.mean:.1f} ± {cell.half:.1f}"
        reader.page.select_option("#spread", "deviation")
        assert reader.cell("tq", "bf").inner_text() == f"{cell.mean:.1f} ± {cell.deviation:.1f}"
        assert reader.page.inner_text("#results h2").startswith("Precision")


def test_rows_are_sorted_by_the_column_that_is_pressed(browser: Any, small: Path) -> None:
    with Reader(browser, small) as reader:
        table = reader.page.locator("table.results").last
        table.get_by_role("button", name="Sort by ipm").click()
        values = [float(text.split()[0]) for text in table.locator("tbody td:nth-child(4) button").all_inner_texts()]
        assert values == sorted(values, reverse=True)
        assert table.locator("th[aria-sort='descending']").inner_text().startswith("ipm")
        reader.page.keyboard.press("Enter")
        again = [float(text.split()[0]) for text in table.locator("tbody td:nth-child(4) button").all_inner_texts()]
        assert again == values[::-1]


def test_cells_are_chosen_with_the_keyboard_and_compared(browser: Any, small: Path) -> None:
    with Reader(browser, small) as reader:
        page = reader.page
        page.get_by_role("button", name="Clear all").click()
        playwright.expect(page.locator("#chosen svg")).to_have_count(0)
        reader.cell("cm", "none", table=1).focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("#chosen svg")
        assert page.locator(".chips li").count() == 1
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        playwright.expect(page.locator(".chips li")).to_have_count(2)
        assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("cm under bf")
        assert "The mean over the seeds and its 95 % interval" in page.inner_text("#chosen")


def test_every_view_of_a_cell_is_drawn_and_byzantine_clients_are_marked(browser: Any, small: Path) -> None:
    with Reader(browser, small) as reader:
        titles = reader.page.locator("figure h4").all_inner_texts()
        wanted = ("Accuracy over", "Training loss", "Tau over", "Weights:", "Mistakes:", "Labels:")
        assert [any(title.startswith(word) for title in titles) for word in wanted] == [True] * len(wanted)
        heat = reader.page.locator("figure", has_text="Weights:").first
        assert heat.locator("svg path").count() > 5
        assert heat.locator("svg text", has_text="Byzantine").count() == 1
        heat.locator("svg").hover(position={"x": 200, "y": 40})
        assert "client" in reader.page.inner_text(".tip")


def test_failures_and_divergences_are_named(browser: Any, small: Path) -> None:
    with Reader(browser, small) as reader:
        told = reader.page.inner_text("#troubles")
        assert "diverged in round 7" in told and "ValueError" in told


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_until_the_reader_chooses(browser: Any, small: Path, scheme: str) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    with Reader(browser, small, color_scheme=scheme) as reader:
        bright = int(reader.page.evaluate(colour).split("(")[1].split(",")[0]) > 128
        assert bright == (scheme == "light")
        for _ in range(2 if scheme == "light" else 1):
            reader.page.click("#theme")
        bright = int(reader.page.evaluate(colour).split("(")[1].split(",")[0]) > 128
        assert bright == (scheme == "dark")


def test_nothing_sticks_out_of_a_phone(browser: Any, small: Path) -> None:
    with Reader(browser, small, viewport=PHONE) as reader:
        assert reader.page.evaluate("document.documentElement.scrollWidth") <= 400
        for picture in reader.page.locator("#chosen svg").all():
            assert picture.bounding_box()["width"] <= 400


def test_figures_are_saved_as_png_and_svg(browser: Any, small: Path, tmp_path: Path) -> None:
    with Reader(browser, small) as reader:
        for form, begins in (("PNG", b"\x89PNG"), ("SVG", b"<svg")):
            for figure in reader.page.locator("figure").all():
                with reader.page.expect_download() as saved:
                    figure.get_by_role("button", name=f"Save as {form}").click()
                saved.value.save_as(tmp_path / "figure")
                content = (tmp_path / "figure").read_bytes()
                assert content.startswith(begins) and len(content) > 2000
                assert saved.value.suggested_filename.endswith(form.lower())
                reader.page.wait_for_timeout(120)  # Chromium drops a page's eleventh download within a second


def test_tables_are_copied_as_markdown_latex_and_csv(browser: Any, small: Path) -> None:
    with Reader(browser, small, permissions=["clipboard-read", "clipboard-write"]) as reader:
        card = reader.page.locator("#results .card").last
        copied = {}
        for form in ("Markdown", "LaTeX", "CSV"):
            card.get_by_role("button", name=f"Copy table as {form}").click()
            playwright.expect(reader.page.locator("#status")).to_have_text(f"Copied as {form}")
            copied[form] = reader.page.evaluate("navigator.clipboard.readText()")
        assert "| rule | none | bf | ipm | worst case |" in copied["Markdown"]
        assert r"\begin{tabular}{lccccc}" in copied["LaTeX"] and r"nnm $\gg$ tq" in copied["LaTeX"]
        assert copied["CSV"].startswith("table,rule,attack,measure,mean,half of interval,deviation,")
        assert len(copied["CSV"].splitlines()) == 13


def test_where_the_clipboard_is_closed_the_text_is_shown_for_copying(browser: Any, small: Path) -> None:
    with Reader(browser, small) as reader:
        reader.page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('closed')); }")
        reader.page.locator("#results").get_by_role("button", name="Copy table as Markdown").first.click()
        assert "| rule |" in reader.page.locator("dialog textarea").input_value()


@pytest.mark.parametrize(("scheme", "size"), [("light", DESK), ("dark", DESK), ("light", PHONE)])
def test_axe_finds_no_violation(browser: Any, small: Path, axe: str, scheme: str, size: dict[str, int]) -> None:
    with Reader(browser, small, color_scheme=scheme, viewport=size) as reader:
        for menu in reader.page.locator("details").all():
            menu.evaluate("node => { node.open = !node.classList.contains('menu') }")
        reader.page.locator("summary", has_text="attack:").click()
        assert find_violations(reader.page, axe) == []


def test_ten_thousand_runs_are_a_page_below_15_mb_that_is_shown_and_filtered(browser: Any, tmp_path: Path) -> None:
    page = write_report(fill_large(tmp_path / "runs.jsonl", 10_000), tmp_path / "page.html", labels=False)
    assert page.stat().st_size < 15e6
    with Reader(browser, page) as reader:  # how fast: benchmarks/page.py
        assert reader.page.inner_text("#facts").startswith("10000 runs in 2000 cells")
        reader.page.locator("#chosen svg").first.wait_for()
        reader.page.locator("summary", has_text="attack:").click()
        reader.page.locator("input[data-facet='attack'][value='bf']").check()
        heads = reader.page.locator("table.results").first.locator("thead th").all_inner_texts()
        assert [head.strip(" ▼▲") for head in heads] == ["rule", "bf", "worst case", "mean over attacks"]
