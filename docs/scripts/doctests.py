"""What the API page does to docstrings: examples for the doctest runner become blocks of code."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^( *)>>> .*(?:\n\1\S.*|\n\1 .*)*", re.MULTILINE)


class Doctests(griffe.Extension):
    """Puts a fence around every run of lines that begins with a prompt."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(fence, obj.docstring.value)


def fence(found: re.Match[str]) -> str:
    margin = found[1]
    return f"{margin}```pycon\n{found[0]}\n{margin}```"
