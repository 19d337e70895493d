"""The playground: the plane of the paper's figure 1 in one page, with the rules computed in the browser."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib import resources

MODULES = ("rules", "scenes", "about", "plot", "panel", "world", "show", "hands", "app")
"""The scripts in the order in which they need each other."""


def write_playground() -> str:
    """One self-contained page: nothing is loaded from anywhere, and the browser is told so.

    Example:
        >>> page = write_playground()
        >>> page.startswith("<!doctype html>"), "http://" in page.replace("http://www.w3.org", "")
        (True, False)
    """
    style, script = read("style.css"), bundle()
    policy = f"default-src 'none'; style-src {allow(style)}; script-src {allow(script)}; img-src data:"
    page = read("page.html")
    for name, text in (("policy", policy), ("style", style), ("script", script)):
        page = page.replace("{{" + name + "}}", text)
    return page


def bundle(modules: tuple[str, ...] = MODULES) -> str:
    """The scripts as one: their imports of each other go, and so does `export`, because a page has one module."""
    parts = [re.sub(r"^import .*\n", "", read(f"{name}.js"), flags=re.MULTILINE) for name in modules]
    return re.sub(r"^export ", "", "\n".join(parts), flags=re.MULTILINE)


def read(name: str) -> str:
    """A file of the page."""
    return resources.files("robagg.report").joinpath("playground", name).read_text(encoding="utf-8")


def allow(text: str) -> str:
    """What a Content-Security-Policy says to allow this text and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
