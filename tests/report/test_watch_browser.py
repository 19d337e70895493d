"""The page of a journal in a real browser: what a reader sees, hears and reaches while a run goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from report.access import find_violations
from report.journals import fill_hostile, fill_journal
from report.reader import DESK, PHONE, Reader
from report.records import HOSTILE
from robagg.report.page import write_report
from robagg.report.watch import WatchServer

pytestmark = pytest.mark.slow
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
playwright.expect.set_options(timeout=60_000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rounds.jsonl"


@pytest.fixture
def server(path: Path) -> Iterator[WatchServer]:
    with WatchServer(path, port=0) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield server
        server.shutdown()


def find(reader: Reader, label: str) -> Any:
    return reader.page.locator(f".rounds [aria-label^='{label}']")


def expect(reader: Reader, place: str) -> Any:
    return playwright.expect(reader.page.locator(place))


def focused(reader: Reader) -> str:
    return str(reader.page.evaluate("document.activeElement.getAttribute('aria-label')"))


def test_new_rounds_come_by_themselves_and_are_announced(browser: Any, server: WatchServer, path: Path) -> None:
    with Reader(browser, server.address, wait="#results h2") as reader:
        expect(reader, "#summary").to_have_text("No round has ended yet.")
        fill_journal(path, 2)
        heard = "Round 2: 12 of 12 clients replied, 2 rejected (site-10, site-11); tau 2.02; f in force 2."
        expect(reader, "#summary[aria-live=polite]").to_have_text(heard)
        fill_journal(path, 1, start=3)
        expect(reader, "#summary").to_contain_text("Round 3: 11 of 12 clients replied")
        assert reader.page.locator(".rounds tbody tr").count() == 12
        expect(reader, "#facts").to_have_text("3 rounds, 12 clients, tq(f=2), followed as it goes on")


def test_each_cell_says_in_words_what_the_round_made_of_the_client(
    browser: Any, server: WatchServer, path: Path
) -> None:
    fill_journal(path, 8)
    with Reader(browser, server.address) as reader:
        for label, text in {
            "site-0, round 8: believed, weight 10 %, distance 1, reputation 1": "10",
            "site-1, round 4: believed, weight 10 %, distance 1.1, reputation 1, odd arrays set aside": "10*",
            "site-2, round 5: no reply, reputation 1": "\u2013",
            "site-11, round 2: rejected, weight 0 %, distance 9.5, reputation 0.64: 9.5 from the centre": "✕",
            "site-0, round 7, skipped: skipped": "⊘ 10",
        }.items():
            assert find(reader, label).inner_text() == text
        rows = reader.page.locator(".rounds tbody th").all_inner_texts()
        assert rows[:3] == ["site-10", "site-11", "site-0"]
        assert reader.page.locator(".rounds thead tr").nth(1).inner_text().split()[:4] == ["tau", "2", "2", "2"]
        reader.page.select_option("#measure", "distance")
        assert find(reader, "site-11, round 2").inner_text() == "✕ 9.5"
        reader.page.select_option("#measure", "reputation")
        assert find(reader, "site-11, round 2").inner_text() == "✕ 0.64"


def test_a_chosen_cell_shows_the_verdict_and_the_round(browser: Any, server: WatchServer, path: Path) -> None:
    fill_journal(path, 8)
    with Reader(browser, server.address) as reader:
        find(reader, "site-11, round 2").click()
        shown = reader.page.inner_text("#chosen")
        for words in (
            "Round 2: site-11",
            "It was rejected: 9.5 from the centre, beyond tau 2.",
            "0.64 after the round",
            "2 (asked for: 0.2)",
            "12 asked, 12 replied, 2 rejected",
            "Weight and reputation of site-11",
            "0.5",
        ):
            assert words in shown, words
        assert "rejected, weight 0 %" in reader.page.inner_text(".spoken[role=status]")
        find(reader, "site-1, round 4").click()
        assert "running_mean is 1e4 times as far off" in reader.page.inner_text("#chosen")
        find(reader, "round 7, skipped").click()
        assert "QuorumError: too few sound replies" in reader.page.inner_text("#chosen")
        assert reader.page.locator("[aria-selected=true]").count() == 1


def test_the_grid_is_one_stop_of_the_keyboard_and_arrows_move_in_it(
    browser: Any, server: WatchServer, path: Path
) -> None:
    fill_journal(path, 60)
    with Reader(browser, server.address) as reader:
        page = reader.page
        page.focus("#go")
        page.keyboard.press("Tab")
        assert page.locator(".rounds [tabindex='0']").count() == 1
        for key in ("ArrowDown", "ArrowDown", "ArrowDown", "End"):
            page.keyboard.press(key)
        assert focused(reader).startswith("site-10, round 60: rejected")
        page.keyboard.press("Enter")
        assert "Round 60: site-10" in page.inner_text("#chosen h2")
        assert focused(reader).startswith("site-10, round 60")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowDown")
        assert focused(reader).startswith("site-11, round 59")
        for _ in range(40):  # beyond the window's edge, which moves along
            page.keyboard.press("ArrowLeft")
        assert focused(reader).startswith("site-11, round 19")
        page.keyboard.press("PageUp")
        page.keyboard.press("PageUp")
        page.keyboard.press("Control+Home")
        assert page.evaluate("document.activeElement.textContent") == "round"
        page.keyboard.press("Tab")
        assert page.locator(".rounds :focus").count() == 0


def test_a_new_round_leaves_the_focus_and_the_choice_where_they_are(
    browser: Any, server: WatchServer, path: Path
) -> None:
    fill_journal(path, 5)
    with Reader(browser, server.address) as reader:
        find(reader, "site-3, round 5").click()
        fill_journal(path, 3, start=6)
        expect(reader, "#summary").to_contain_text("Round 8")
        assert focused(reader).startswith("site-3, round 5")
        assert "Round 5: site-3" in reader.page.inner_text("#chosen h2")
        reader.page.keyboard.press("ArrowRight")
        assert focused(reader).startswith("site-3, round 6")


def test_earlier_rounds_stay_in_view_while_new_ones_come(browser: Any, server: WatchServer, path: Path) -> None:
    fill_journal(path, 90)
    with Reader(browser, server.address) as reader:
        page = reader.page
        page.fill("#go", "20")
        page.keyboard.press("Enter")
        expect(reader, ".rounds [aria-label='round 20']").to_be_visible()
        fill_journal(path, 1, start=91)
        expect(reader, "#summary").to_contain_text("Round 91")
        assert find(reader, "round 20").count() == 1 and find(reader, "round 91").count() == 0
        page.get_by_role("button", name="Newest").click()
        assert find(reader, "round 91").count() == 1
        page.get_by_role("button", name="Earlier").click()
        assert find(reader, "round 91").count() == 0


def test_another_journal_takes_the_place_of_the_first(browser: Any, server: WatchServer, path: Path) -> None:
    fill_journal(path, 9)
    with Reader(browser, server.address) as reader:
        find(reader, "site-3, round 9").click()
        path.unlink()
        fill_journal(path, 2, 4)
        expect(reader, "#summary").to_contain_text("Round 2: 4 of 4")
        assert reader.page.locator(".rounds tbody tr").count() == 4
        assert "The newest: round 2" in reader.page.inner_text("#chosen h2")


def test_when_the_server_ends_the_page_says_so_and_keeps_what_it_has(browser: Any, path: Path) -> None:
    fill_journal(path, 3)
    server = WatchServer(path, port=0)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    with Reader(browser, server.address) as reader:
        assert find(reader, "site-3, round 3").count() == 1
        server.shutdown()
        server.server_close()
        expect(reader, "#facts").to_contain_text("robagg watch does not answer", timeout=15_000)
        assert find(reader, "site-3, round 3").count() == 1
        assert all("ERR_CONNECTION_REFUSED" in said for said in reader.complaints)
        reader.complaints.clear()


@pytest.mark.parametrize("live", [True, False])
def test_names_that_try_to_be_markup_are_shown_and_not_run(
    browser: Any, server: WatchServer, path: Path, live: bool
) -> None:
    fill_hostile(path)
    place = server.address if live else write_report(path, path.with_name("page.html"))
    with Reader(browser, place) as reader:
        for k in range(6):
            reader.page.locator(".rounds tbody tr").nth(k).locator("td").nth(2).click()
            assert reader.page.evaluate("document.documentElement.scrollWidth") <= DESK["width"]
        reader.page.locator(".rounds tbody td[aria-label*='<script>']").first.click()
        shown = reader.page.inner_text("body")
        assert HOSTILE in shown and "\\u{202e}evil\\u{202c}" in shown and "\u202e" not in shown
        assert "عميل-7" in shown
        assert reader.page.evaluate("window.stolen") is None
        assert reader.page.locator("img, .rounds script").count() == 0


def test_a_report_of_a_journal_needs_no_server(browser: Any, path: Path) -> None:
    fill_journal(path, 230)
    with Reader(browser, write_report(path, path.with_name("page.html"))) as reader:
        expect(reader, "#facts").to_have_text("230 rounds, 1 skipped, 12 clients, tq(f=2)")
        find(reader, "site-3, round 230").click()
        assert "Round 230: site-3" in reader.page.inner_text("#chosen h2")
        assert "This page needs no network" in reader.page.inner_text("#footer")


def test_a_journal_without_rounds_is_said_to_have_none(browser: Any, path: Path) -> None:
    path.write_bytes(b'{"journal":1,"seq":0')
    with Reader(browser, write_report(path, path.with_name("page.html")), wait="#results h2") as reader:
        expect(reader, "#summary").to_have_text("The journal has no rounds.")


@pytest.mark.parametrize("kind", ["plain", "hostile"])
@pytest.mark.parametrize(("scheme", "size"), [("light", DESK), ("dark", DESK), ("light", PHONE)])
def test_axe_finds_no_violation(
    browser: Any, server: WatchServer, path: Path, axe: str, scheme: str, size: dict[str, int], kind: str
) -> None:
    if kind == "plain":
        fill_journal(path, 8)
    else:
        fill_hostile(path)
    # The page's own policy lets no other program in, and axe is one.
    with Reader(browser, server.address, color_scheme=scheme, viewport=size, bypass_csp=True) as reader:
        for row, measure in enumerate(("weight", "distance", "reputation")):
            reader.page.select_option("#measure", measure)
            reader.page.locator(".rounds tbody tr").nth(2 * row).locator("td").nth(2).click()
            assert find_violations(reader.page, axe) == []
        assert reader.page.evaluate("document.documentElement.scrollWidth") <= size["width"]


def test_two_hundred_clients_and_thousands_of_rounds_stay_usable(browser: Any, server: WatchServer, path: Path) -> None:
    fill_journal(path, 2000, 210)
    timing = """async () => {
        const begin = performance.now();
        document.querySelector('.rounds tbody td:last-child').click();
        await new Promise(requestAnimationFrame);
        await new Promise(requestAnimationFrame);  // the first one is before the paint
        return performance.now() - begin;
    }"""
    with Reader(browser, server.address, wait="#results h2") as reader:
        expect(reader, "#facts").to_contain_text("2000 rounds", timeout=120_000)
        print(f"a choice: {reader.page.evaluate(timing):.0f} ms")
        assert reader.page.locator(".rounds tbody tr").count() == 200
        reader.page.get_by_role("button", name="Show 10 more clients").click()
        assert reader.page.locator(".rounds tbody tr").count() == 210
        reader.page.fill("#search", "site-20")
        assert reader.page.locator(".rounds tbody tr").count() == 11
        assert reader.page.locator(".rounds tbody td").count() < 11 * 64
