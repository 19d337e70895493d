"""The report page of ten thousand runs: its size, how soon it is shown, how soon a filter answers.

    python benchmarks/page.py [--runs 10000] [--store FILE] [--json FILE]

Needs playwright and chromium. Without a store one is made up, with curves and weights as a lab records them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from robagg.report.page import write_report
from timing import describe_machine

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from report.conftest import CHROMIUM, FLAGS
from report.records import fill_large

SHOWN = """async () => {
    await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);  // the first one is before the paint
    return performance.now();
}"""
FILTERED = """async (box) => {
    const begin = performance.now();
    box.click();
    await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    return performance.now() - begin;
}"""
FILTERS = {"attack": ("bf", "ipm", "bf", "ipm"), "f": ("4", "4"), "rho": ("0.5", "0.5")}
"""The boxes that are pressed: each is switched on, and off again."""


def measure(browser: Browser, address: str) -> dict[str, Any]:
    """Seconds from the call for the page to its tables and its curves, and of each press of a filter."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(address, wait_until="commit")
    page.wait_for_selector("table.results")
    tables = page.evaluate(SHOWN) / 1000
    page.wait_for_selector("#chosen svg")
    curves = page.evaluate(SHOWN) / 1000
    presses = [
        page.locator(f"input[data-facet='{name}'][value='{value}']").evaluate(FILTERED) / 1000
        for name, values in FILTERS.items()
        for value in values
    ]
    page.close()
    return {"tables": tables, "curves": curves, "filters": presses}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--store", type=Path, help="measure this one instead")
    parser.add_argument("--times", type=int, default=5, help="how often the page is opened")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    options = parser.parse_args()
    result: dict[str, Any] = {"machine": describe_machine()}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as engine:
        store = options.store or fill_large(Path(folder) / "runs.jsonl", options.runs)
        begin = time.perf_counter()
        page = write_report(store, Path(folder) / "report.html", labels=False)
        result |= {"written": time.perf_counter() - begin, "store MB": store.stat().st_size / 1e6}
        result["page MB"] = page.stat().st_size / 1e6
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        looks = [measure(browser, page.as_uri()) for _ in range(options.times)]
        browser.close()
    for name in ("tables", "curves"):
        result[name] = statistics.median(look[name] for look in looks)
    presses = [press for look in looks for press in look["filters"]]
    result |= {"filter": statistics.median(presses), "slowest filter": max(presses)}
    for name, value in result.items():
        print(f"{name:15} {value if isinstance(value, dict) else round(value, 3)}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
