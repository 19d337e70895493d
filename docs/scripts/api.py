"""Writes a table above each directive of docs/api.md, so that the page says something before it is built.

python docs/scripts/api.py
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from enum import Enum
from pathlib import Path
from typing import Any

import robagg

PAGE = Path(__file__).parents[1] / "api.md"
DIRECTIVE = re.compile(
    r"(?:<!-- names -->\n.*?<!-- end of names -->\n\n)?"
    r"(?P<directive>::: (?P<module>\S+)\n(?:    options:\n      members: \[(?P<members>[^\]]*)\]\n)?)",
    re.DOTALL,
)


ADAPTERS = ("robagg.flower", "robagg.nvflare")
"""Packages that import what may not be installed: they are read, not imported."""


def fill(page: str) -> str:
    """The page with its tables."""
    return DIRECTIVE.sub(write_table, page)


def write_table(found: re.Match[str]) -> str:
    if found["module"] in ADAPTERS:
        lines = [f"| {read(name, found['module'])} |\n" for name in found["members"].split(", ")]
    else:
        module = importlib.import_module(found["module"])
        names = found["members"].split(", ") if found["members"] else module.__all__
        lines = [f"| {describe(name, getattr(module, name))} |\n" for name in names]
    head = "<!-- names -->\n| name | what it is |\n|---|---|\n"
    return f"{head}{''.join(lines)}<!-- end of names -->\n\n{found['directive']}"


def describe(name: str, thing: Any) -> str:
    """A name with its parameters, and the first sentence of what is said of it."""
    first = (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ").replace("|", r"\|")
    if not callable(thing):
        return f"`{name}` | a type: a number, a share, or None" if name == "F" else f"`{name}` |"
    plain = isinstance(thing, type) and issubclass(thing, (Enum, BaseException))
    return f"`{name}{'' if plain else list_parameters(thing)}` | {first}"


def read(name: str, package: str) -> str:
    """A name and the first sentence of what is said of it, from the files of its package."""
    folder = Path(robagg.__file__).parent / package.rpartition(".")[2]
    for file in sorted(folder.glob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
                return f"`{name}` | {(ast.get_docstring(node) or '').partition(chr(10) * 2)[0]}"
    raise ValueError(f"{package} must have {name}, which docs/api.md names")


def list_parameters(thing: Any) -> str:
    """Names and defaults, without types."""
    parts, named = list[str](), False
    for parameter in inspect.signature(thing).parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not named:
            parts, named = [*parts, "*"], True
        named = named or parameter.kind is parameter.VAR_POSITIONAL
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = "" if parameter.default is parameter.empty else f"={spell(parameter.default)}"
        parts.append(f"{star}{parameter.name}{default}")
    return f"({', '.join(parts)})"


def spell(default: Any) -> str:
    """A default as it may be written; what has no such form is a dot or three."""
    text = repr(default)
    return "..." if text.startswith("<") or len(text) > 40 else text.replace("|", r"\|")


if __name__ == "__main__":
    PAGE.write_text(fill(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
