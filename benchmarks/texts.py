"""Tables and paragraphs of the page of figures."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable


def tabulate(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def wrap(text: str) -> str:
    """A paragraph in lines of the usual length."""
    return textwrap.fill(text, 120, break_on_hyphens=False, break_long_words=False) + "\n"
