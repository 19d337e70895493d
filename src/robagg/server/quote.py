"""What others wrote, as it may go to a log or a terminal: short, on one line, and with nothing that steers it."""

from __future__ import annotations

from robagg._core.leaf import cut


def quote(text: object, most: int = 80) -> str:
    r"""The beginning of a text, on one line.

    >>> quote("a\tb\n\x1b[2Jc")
    'a b \\x1b[2Jc'
    """
    return cut(escape(" ".join(str(text)[:2000].split())), most)


def quote_end(text: object, most: int = 120) -> str:
    """The last line of a text: of a traceback it says most."""
    lines = [line.strip() for line in str(text)[-2000:].splitlines() if line.strip()]
    return cut(escape(lines[-1]) if lines else "", most)


def escape(text: str, keep: str = "") -> str:
    """The text with what does not print, but for the characters to keep, written out."""
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)
