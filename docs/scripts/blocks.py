"""Parts of hand-written pages that come from records."""

from __future__ import annotations

from pathlib import Path


def put(page: Path, name: str, text: str) -> None:
    """Write the part of that name again."""
    whole = page.read_text(encoding="utf-8")
    begin, end = f"<!-- {name}: made by make paper-docs -->\n", f"\n<!-- end of {name} -->"
    if begin not in whole or end not in whole:
        raise ValueError(f"{page.name} must have a part between {begin!r} and {end!r}, and has not")
    head, rest = whole.split(begin)
    page.write_text(head + begin + text + end + rest.split(end)[1], encoding="utf-8")
