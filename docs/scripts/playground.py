"""docs/images/playground.png: a picture of the playground; needs playwright and chromium.

python docs/scripts/playground.py
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from robagg.report import write_playground

IMAGE = Path(__file__).parents[1] / "images" / "playground.png"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        file = Path(folder) / "playground.html"
        file.write_text(write_playground(), encoding="utf-8")
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 1140}, color_scheme="light")
        page.goto(file.as_uri())
        page.click("[data-scene=good]")
        page.wait_for_timeout(500)
        page.screenshot(path=IMAGE)
        print(IMAGE)
        browser.close()


if __name__ == "__main__":
    main()
