"""Puts a page together: markup, style, program and data in one file."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

from robagg._version import __version__
from robagg.lab.contents import refuse_special
from robagg.lab.lines import MARK as STORE_MARK
from robagg.report.bundle import allow, bundle, fill, read
from robagg.report.page.gather import gather
from robagg.report.page.gather_rounds import gather_rounds
from robagg.server.journal import MARK as JOURNAL_MARK
from robagg.server.journal import list_files

VIEWS = {
    "runs": (
        "page", "words", "data", "scales", "export", "figure", "curves", "heatmap", "progress", "belief", "filters",
        "summary", "key", "table", "breakdown", "details", "main",
    ),
    "rounds": ("page", "words", "scales", "export", "figure", "curves", "rounds", "grid", "verdict", "follow"),
}  # fmt: skip
"""The program's files for a store and for a journal, each after those it uses."""
MARKS = {"store": STORE_MARK, "journal": JOURNAL_MARK}
"""How the lines of both begin."""


def write_report(
    store: str | Path,
    path: str | Path,
    *,
    title: str | None = None,
    data: str | Path | None = None,
    labels: bool = True,
) -> Path:
    """Write the page of a store, or of the journal of a server.

    Args:
        store: the file of records, or the journal.
        path: the HTML file to write; its folder is made if need be.
        title: the page's; by default the file's name.
        data: the folder of the data sets, to count each client's labels in the runs of a store.
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
    kind = tell_kind(store)
    if path.exists() and any(path.samefile(file) for file in list_files(store)):
        raise ValueError(f"the page would overwrite the {kind} {store}: choose another file to write")
    known = gather_rounds(store) if kind == "journal" else gather(store, data=data, labels=labels)
    # A file's name need not be UTF-8, and a page that cannot be encoded must not cost the one that is there.
    view = "rounds" if kind == "journal" else "runs"
    page = build_page(known, title or known["name"], view).encode("utf-8", "replace")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(page)
    return path


def tell_kind(path: Path) -> str:
    """Whether a file is a store or a journal; anything else is refused."""
    refuse_special(path)
    if not list_files(path):
        raise FileNotFoundError(f"there is no store and no journal at {path}")
    empty = True
    for file in list_files(path):
        with file.open("rb") as lines:
            for line in lines:
                for kind, mark in MARKS.items():
                    if line.startswith(mark):
                        return kind
                empty = empty and not line.strip()
    if not empty:
        raise ValueError(f"{path} must be a store of runs or the journal of a server, got other contents")
    return "store"


def build_page(known: dict[str, Any], title: str, view: str, *, live: bool = False) -> str:
    """The page as text; a live one asks the server that it came from for more."""
    known = known | {"title": title, "version": __version__, "live": live}
    parts = {
        "POLICY": write_policy(view, live=live),
        "TITLE": html.escape(title),
        "STYLE": read("page/assets", "page.css"),
        "MAIN": read("page/assets", f"{view}.html"),
        "DATA": embed(known),
        "SCRIPT": bundle("page/assets", VIEWS[view]),
    }
    return fill(read("page/assets", "page.html"), parts)


def write_policy(view: str, *, live: bool = False) -> str:
    """Hashes, not 'unsafe-inline': nothing runs but the view's script, and only a live page fetches anything."""
    script, style = allow(bundle("page/assets", VIEWS[view])), allow(read("page/assets", "page.css"))
    parts = ["default-src 'none'", f"script-src {script}", f"style-src {style}", "img-src data: blob:"]
    return "; ".join([*parts, *["connect-src 'self'"] * live, "base-uri 'none'", "form-action 'none'"])


def embed(value: Any) -> str:
    r"""JSON that can stand inside a script element: nothing in it can end the element or begin another.

    >>> embed({"name": "</script><script>"})
    '{"name":"\\u003c/script\\u003e\\u003cscript\\u003e"}'
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")
