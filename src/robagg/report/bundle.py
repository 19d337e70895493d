"""A page in one file that asks nothing of the network: scripts joined, and a policy that allows them and no others."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from importlib import resources


def read(folder: str, name: str) -> str:
    """A file of a page, in a folder below this package."""
    return (resources.files("robagg.report") / folder / name).read_text(encoding="utf-8")


def bundle(folder: str, modules: Iterable[str]) -> str:
    """The modules as one script: each is a function with its own names, and the later ones take from its exports."""
    return "'use strict';\n" + "".join(_wrap(name, read(folder, f"{name}.js")) for name in modules)


def _wrap(name: str, text: str) -> str:
    exports = ", ".join(re.findall(r"^export (?:async )?(?:function|const) (\w+)", text, flags=re.MULTILINE))
    text = re.sub(
        r"^import (\{[^}]*\}) from ['\"]\./(\w+)\.js['\"];$", r"const \1 = \2Module;", text, flags=re.MULTILINE
    )
    text = re.sub(r"^export ", "", text, flags=re.MULTILINE)
    return f"const {name}Module = (() => {{\n{text}return {{ {exports} }};\n}})();\n"


def allow(text: str) -> str:
    """What a Content-Security-Policy says to allow this text and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def fill(page: str, parts: Mapping[str, str]) -> str:
    """The page with each part in the place of its mark, %NAME%; in one go, so that marks inside a part stay."""
    return re.sub(rf"%({'|'.join(parts)})%", lambda found: parts[found[1]], page)
