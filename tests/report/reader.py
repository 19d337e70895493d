"""Somebody who has a page open in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

DESK, PHONE = {"width": 1280, "height": 900}, {"width": 400, "height": 850}


class Reader:
    """A page that somebody has open, from a file or a server here; it must not complain, nor ask anybody else."""

    def __init__(self, browser: Any, place: Path | str, *, wait: str = "#chosen h2", **options: Any) -> None:
        self.address = place.as_uri() if isinstance(place, Path) else place
        self.context = browser.new_context(**{"viewport": DESK, "accept_downloads": True} | options)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.set_default_timeout(120_000)
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type != "log" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda asked: self._check(asked.url))
        self.page.goto(self.address)
        self.page.wait_for_selector(wait)

    def _check(self, address: str) -> None:
        if not address.startswith(("data:", "blob:", self.address)):
            self.complaints.append(f"asked the network for {address}")

    def cell(self, rule: str, attack: str, table: int = 0) -> Any:
        return self.page.locator("table.results").nth(table).locator(f"[aria-label^='{rule} under {attack}:']")

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.context.close()
        assert kind is not None or self.complaints == []
