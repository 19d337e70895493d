"""What mkdocs calls while it builds the site.

Formulas become MathML, so that pages need no script and no network; wide pages get the whole width; the playground is
put beside the pages.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

from robagg.report import write_playground

TIGHT = re.compile(r"<mo(?: stretchy=\"false\")?>(&#x0007C;|&#x0002F;|\||/)</mo>")
"""Bars and slashes: as operators they would stand apart from what they belong to."""
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The paper's tables are wide: their pages have no list of headings at the side."""
    if page.file.src_uri.startswith("paper/"):
        page.meta["hide"] = ["toc"]
    return markdown


def on_page_content(content: str, **_: Any) -> str:
    """Replace every formula of a page; the TeX stays as its annotation for who reads the source."""
    return FORMULA.sub(translate, content)


def translate(found: re.Match[str]) -> str:
    tag, opening, tex = found[1], found[2], html.unescape(found[3]).strip()
    display = "inline" if opening == "(" else "block"
    math = TIGHT.sub(r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', convert(tex, display=display))
    return f'<{tag} class="formula" title="{html.escape(tex)}">{math}</{tag}>'


def on_post_build(config: Any, **_: Any) -> None:
    """The playground as a page of the site."""
    (Path(config.site_dir) / "playground.html").write_text(write_playground(), encoding="utf-8")
