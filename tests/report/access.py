"""Looks for what a screen reader or a keyboard cannot use."""

from __future__ import annotations

from typing import Any


def find_violations(page: Any, axe: str) -> list[tuple[str, list[str]]]:
    """What axe-core complains about in an open page: the rule, and the first elements that break it."""
    page.evaluate(axe)
    found = page.evaluate("axe.run().then(({ violations }) => violations)")
    return [(v["id"], [node["html"][:200] for node in v["nodes"][:3]]) for v in found]
