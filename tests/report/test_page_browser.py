"""The page in a real browser: what a reader sees, clicks, hears and saves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from report.access import find_violations
from report.reader import DESK, PHONE, Reader
from report.records import HOSTILE, fill_large, fill_small, make_record
from robagg.lab import Run, Store
from robagg.report.page import write_report

pytestmark = pytest.mark.slow
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    return write_report(fill_small(folder / "runs.jsonl"), folder / "report.html")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    return write_report(fill_large(folder / "runs.jsonl"), folder / "report.html")


def test_it_opens_from_a_file_without_an_error_and_says_which_rule_is_best(browser: Any, small: Path) -> None:
    with Reader(browser, small) as reader:
        assert "best worst case" in reader.page.inner_text("#summary")
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
        assert "Thick: the mean over seeds" in page.inner_text("#chosen")


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
        assert copied["CSV"].startswith("table,rule,attack,mean,deviation,seeds,diverged,failed\n")
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


def test_with_a_thousand_runs_a_filter_answers_within_200_ms(browser: Any, large: Path) -> None:
    timing = """async (box) => {
        const begin = performance.now();
        box.click();
        await new Promise(requestAnimationFrame);
        await new Promise(requestAnimationFrame);  // the first one is before the paint
        return performance.now() - begin;
    }"""
    with Reader(browser, large) as reader:
        times = []
        for value in ("bf", "ipm", "bf", "ipm", "lf", "lf"):
            times.append(reader.page.locator(f"input[data-facet='attack'][value='{value}']").evaluate(timing))
        print(f"filter: {sorted(times)} ms; page: {large.stat().st_size / 1e6:.2f} MB")
        assert sorted(times)[len(times) // 2] < 200


def test_with_a_thousand_runs_the_file_stays_below_20_mb(large: Path) -> None:
    assert large.stat().st_size < 20e6
