"""The playground: the plane of the paper's figure 1 in one page, with the rules computed in the browser."""

from __future__ import annotations

from robagg.report.bundle import allow, bundle, fill, read

MODULES = ("rules", "scenes", "about", "plot", "panel", "world", "show", "hands", "app")
"""The scripts in the order in which they need each other."""


def write_playground() -> str:
    """One self-contained page: nothing is loaded from anywhere, and the page says so to the browser.

    Example:
        >>> page = write_playground()
        >>> page.startswith("<!doctype html>"), "http://" in page.replace("http://www.w3.org", "")
        (True, False)
    """
    style, script = read("playground", "style.css"), bundle("playground", MODULES)
    policy = f"default-src 'none'; style-src {allow(style)}; script-src {allow(script)}; img-src data:"
    return fill(read("playground", "page.html"), {"POLICY": policy, "STYLE": style, "SCRIPT": script})
