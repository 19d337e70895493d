"""docs/images/playground*.png: the playground in light, dark and at a phone's width; needs playwright and chromium.

python docs/scripts/playground.py
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from robagg.report.playground import write_playground

IMAGES = Path(__file__).parents[1] / "images"
VIEWS = {
    "playground": ("good", "light", 1200, 1140, False),
    "playground-dark": ("near", "dark", 1200, 1140, False),
    "playground-phone": ("far", "light", 400, 860, False),
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        file = Path(folder) / "playground.html"
        file.write_text(write_playground(), encoding="utf-8")
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (scene, scheme, width, height, full) in VIEWS.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
            page.goto(file.as_uri())
            page.click(f"[data-scene={scene}]")
            page.wait_for_timeout(500)
            page.screenshot(path=IMAGES / f"{name}.png", full_page=full)
            print(IMAGES / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
