"""Makes the pictures of docs/report.md: a small sweep on digits, its page, and screenshots of each view.

    python docs/scripts/screenshots_report.py [STORE]

Needs playwright and chromium. A store that is given and there already is used as it is.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from robagg.lab import Store, execute, grid
from robagg.report.page import write_report

IMAGES = Path(__file__).parents[1] / "images"
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-sync"
DESK, PHONE = {"width": 1280, "height": 860}, {"width": 400, "height": 860}


def fill(path: Path) -> Path:
    """A few minutes of digits: five rules, four attacks, two f, three seeds."""
    rules, attacks = ["tq", "cm", "krum", "mean", "nnm >> tq"], ["none", "bf", "ipm", "lf"]
    settings = {"rounds": 200}
    with Store(path) as store:
        for run in grid(rules=rules, attacks=attacks, f=[4, 6], seeds=[0, 1, 2], settings=settings):
            if run.key not in store.records:
                store.append(execute(run, device="cpu"))
    return path


def choose(page: Any, rule: str, attack: str) -> None:
    """Press a cell of the last table."""
    page.locator("table.results").last.locator(f"[aria-label^='{rule} under {attack}:']").click()


def shoot(page: Any, name: str, first: Any = None, last: Any = None) -> None:
    """A picture of what is on the screen, or of what lies between the tops and ends of two elements."""
    path = IMAGES / f"report-{name}.png"
    if first is None:
        page.screenshot(path=path)
        return
    page.evaluate("scrollTo(0, 0)")
    top, end = first.bounding_box(), (last or first).bounding_box()
    height = end["y"] + end["height"] - top["y"] + 24
    clip = {"x": 0, "y": top["y"] - 12, "width": page.viewport_size["width"], "height": height}
    page.screenshot(path=path, clip=clip, full_page=True)


def shoot_all(browser: Any, address: str) -> None:
    page = browser.new_page(viewport=DESK)
    page.goto(address)
    page.wait_for_selector("#chosen svg")
    shoot(page, "table")
    page.get_by_role("button", name="Clear all").click()
    for rule in ("tq", "cm"):
        choose(page, rule, "bf")
        page.locator(".chips li", has_text=f"{rule} under").wait_for()
    shoot(page, "breakdown", page.locator("#breakdown h3"), page.locator("#breakdown figure").first)
    figures = page.locator("#chosen figure")
    shoot(page, "curves", page.locator("#chosen h2"), figures.filter(has_text="Distance of the Byzantine"))
    believed = figures.filter(has_text="Weights:")
    shoot(page, "believed", page.get_by_role("heading", name="Who was believed"), believed.last)
    shoot(page, "split", page.get_by_role("heading", name="How the data was split"), figures.filter(has_text="Labels:"))
    shoot(page, "troubles", page.locator("#troubles"), page.locator("#about"))
    page.close()
    for name, look in {
        "dark": {"viewport": DESK, "color_scheme": "dark"},
        "phone": {"viewport": PHONE},
        "phone-dark": {"viewport": PHONE, "color_scheme": "dark"},
    }.items():
        page = browser.new_page(**look)
        page.goto(address)
        page.wait_for_selector("#chosen svg")
        if name == "dark":
            choose(page, "cm", "lf")
            page.locator(".chips li", has_text="cm under").wait_for()
        shoot(page, name, page.locator("header"), figures_end(page))
        page.close()


def figures_end(page: Any) -> Any:
    """The first figure of the chosen cells, down to which a picture of the whole page goes."""
    return page.locator("#chosen figure").first


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as engine:
        store = fill(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "digits.jsonl")
        report = write_report(store, Path(folder) / "report.html", title="Digits under attack")
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        shoot_all(browser, report.as_uri())
        browser.close()


if __name__ == "__main__":
    main()
