"""Puts the page together: markup, style, program and data in one file."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

from robagg._version import __version__
from robagg.report.bundle import allow, bundle, fill, read
from robagg.report.page.gather import gather

MODULES = (
    "page", "words", "data", "scales", "export", "figure", "curves", "heatmap", "progress", "belief", "filters",
    "summary", "table", "details", "main",
)  # fmt: skip
"""The program's files, each after those it uses."""


def write_report(
    store: str | Path,
    path: str | Path,
    *,
    title: str | None = None,
    data: str | Path | None = None,
    labels: bool = True,
) -> Path:
    """Write the page of a store.

    Args:
        store: the file of records.
        path: the HTML file to write; its folder is made if need be.
        title: the page's; by default the store's name.
        data: the folder of the data sets, to count each client's labels.
        labels: whether to count them.

    Example:
        >>> import tempfile
        >>> from robagg.lab import Run, Store, execute
        >>> folder = Path(tempfile.mkdtemp())
        >>> with Store(folder / "runs.jsonl") as store:
        ...     store.append(execute(Run(rule="tq", attack="ipm", f=4, settings={"rounds": 2}), device="cpu"))
        >>> write_report(store.path, folder / "report.html").name
        'report.html'
    """
    store, path = Path(store), Path(path)
    if store.exists() and path.exists() and path.samefile(store):
        raise ValueError(f"the page would overwrite the store {store}: choose another file to write")
    known = gather(store, data=data, labels=labels)
    # A file's name need not be UTF-8, and a page that cannot be encoded must not cost the one that is there.
    page = build_page(known, title or known["name"]).encode("utf-8", "replace")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(page)
    return path


def build_page(known: dict[str, Any], title: str) -> str:
    """The page as text."""
    script, style = bundle("page/assets", MODULES), read("page/assets", "page.css")
    # Hashes, not 'unsafe-inline': nothing runs but this script, and nothing is fetched from anywhere.
    policy = (
        f"default-src 'none'; script-src {allow(script)}; style-src {allow(style)}; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    known = known | {"title": title, "version": __version__}
    parts = {
        "POLICY": policy,
        "TITLE": html.escape(title),
        "STYLE": style,
        "DATA": embed(known),
        "SCRIPT": script,
    }
    return fill(read("page/assets", "page.html"), parts)


def embed(value: Any) -> str:
    r"""JSON that can stand inside a script element: nothing in it can end the element or begin another.

    >>> embed({"name": "</script><script>"})
    '{"name":"\\u003c/script\\u003e\\u003cscript\\u003e"}'
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")
