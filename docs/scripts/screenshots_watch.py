"""docs/images/watch*.png: a run of thirty rounds as `robagg watch` shows it; needs playwright and chromium.

python docs/scripts/screenshots_watch.py [FOLDER]

With a folder, the whole pages go there, on a narrow screen too, to be looked at.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import sync_playwright

from robagg.report.watch import WatchServer
from robagg.server import Reply, RobustServer

IMAGES = Path(__file__).parents[1] / "images"
LOOKS: dict[str, dict[str, Any]] = {
    "watch": {"viewport": {"width": 1280, "height": 935}},
    "watch-dark": {"viewport": {"width": 1280, "height": 935}, "color_scheme": "dark"},
    "watch-narrow": {"viewport": {"width": 800, "height": 900}},
    "watch-phone": {"viewport": {"width": 400, "height": 860}},
    "watch-phone-dark": {"viewport": {"width": 400, "height": 860}, "color_scheme": "dark"},
}
CLIENTS, ROUNDS, HOSTILE = 12, 30, ("clinic-4", "clinic-9")


def fill(path: Path) -> Path:
    """Twelve clients of which two send what they like: one from the start, one from round 12 on; some do not answer."""
    source = torch.Generator().manual_seed(3)
    goal = torch.randn(400, generator=source)
    server = RobustServer("tq", f=2, journal=path, reputation="quarantine")
    model = {"weight": torch.zeros(400)}
    for number in range(1, ROUNDS + 1):
        replies = {}
        for k in range(1, CLIENTS + 1):
            name = f"clinic-{k}"
            if (k * 7 + number) % 41 == 0:
                continue
            row = model["weight"] + 0.1 * (goal - model["weight"]) + 0.05 * torch.randn(400, generator=source)
            if (name == HOSTILE[0] and number % 3) or (name == HOSTILE[1] and number > 11):
                row = model["weight"] - 2 * (goal - model["weight"])
            loss = float((row - goal).square().mean())
            replies[name] = Reply({"weight": row}, size=200.0 + 50 * k, metrics={"loss": loss})
        asked = [f"clinic-{k}" for k in range(1, CLIENTS + 1)]
        result = server.aggregate(number, replies if number != 17 else {}, model=model, asked=asked)
        model = result.model
    return path


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        journal = fill(Path(folder) / "rounds.jsonl")
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        with WatchServer(journal, port=0) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            for name, look in LOOKS.items():
                page = browser.new_page(**look)
                page.goto(server.address)
                page.locator("[aria-label^='clinic-4, round 29:']").click()
                page.wait_for_timeout(300)
                if len(sys.argv) > 1:
                    page.screenshot(path=Path(sys.argv[1]) / f"{name}.png", full_page=True)
                elif name != "watch-narrow":
                    page.evaluate("scrollTo(0, 0)")
                    page.screenshot(path=IMAGES / f"{name}.png")
                    print(IMAGES / f"{name}.png")
                page.close()
            server.shutdown()
        browser.close()


if __name__ == "__main__":
    main()
