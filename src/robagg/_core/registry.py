"""Finds the classes of a folder by name and reads them from text: `tq(f=6, iterations=20)`.

A rule, a pre-aggregator, an attack or a split is a frozen dataclass in a file of its own. Its fields are its
hyper-parameters, so it prints itself as a call with the fields that differ from their defaults, and that text
reads back to an equal object. Nothing has to be registered: looking into the folder finds it.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import importlib
import inspect
import math
import pkgutil
import re
from collections.abc import Iterable
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from robagg._core.alias import Alias

_CONSTANTS = {"inf": math.inf, "nan": math.nan, "true": True, "false": False, "none": None}

LATER = {"later": True}
"""Metadata of a field of a named thing, or of `Settings`, that came after results had been stored: at its default it is
no part of their keys."""

REVISED = {"revised": True}
"""Metadata of a field that chooses between what was and what a revision made of it: keys have the revision instead."""


class Named:
    """What all things looked up by name share: a name, other names, and a text that reads back to an equal object."""

    aliases: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def name(cls) -> str:
        return cls.__name__.lower()

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """All names it is found by, folded; the other names of a parent are the parent's."""
        return tuple(map(fold, (cls.name(), *cls.__dict__.get("aliases", ()))))

    def __str__(self) -> str:
        changed = []
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if value != field.default:
                # A NumPy number prints as np.int64(3), which does not read back.
                changed.append(f"{field.name}={value.item() if isinstance(value, np.generic) else value!r}")
        return f"{self.name()}({', '.join(changed)})" if changed else self.name()


T = TypeVar("T", bound=Named)


def fold(name: str) -> str:
    """`Multi-Krum`, `multi_krum` and `MultiKrum` are one name."""
    return name.strip().lower().replace("_", "").replace("-", "").replace(" ", "")


class Registry(Generic[T]):
    """The concrete subclasses of `base` in the modules of `packages`, and those added by plugins, by name."""

    def __init__(self, kind: str, base: type[T], *packages: str) -> None:
        self.kind = kind
        self.base = base
        self.packages = packages
        self._classes: dict[str, type[T]] = {}
        self._added: dict[str, type[T]] = {}
        self._searched = False

    def classes(self) -> dict[str, type[T]]:
        """Every class by its name, in alphabetical order."""
        if not self._searched:
            for package in self.packages:
                folder = importlib.import_module(package)
                for module in pkgutil.iter_modules(folder.__path__, f"{package}."):
                    for cls in self._defined_in(importlib.import_module(module.name)):
                        self._classes[cls.name()] = cls
            self._searched = True
        return dict(sorted((self._classes | self._added).items()))

    def add(self, cls: type[T]) -> type[T]:
        """Make a class of a user's own known by its name (also as a decorator)."""
        if not (inspect.isclass(cls) and issubclass(cls, self.base)):
            raise TypeError(f"a {self.kind} must be a subclass of {self.base.__name__}, got {cls!r}")
        known = {name for other in self.classes().values() for name in other.names()}
        if cls.name() in self._added:  # it takes that one's place
            known -= set(self._added[cls.name()].names())
        for name in cls.names():
            if name in known:
                raise ValueError(f"there is a {self.kind} named {name!r} already; choose another name")
        self._added[cls.name()] = cls
        return cls

    def remove(self, name: str) -> None:
        """Forget a class that was added; what the package itself holds stays."""
        self._added.pop(name, None)

    def find(self, name: str) -> type[T]:
        """The class of that name or alias; case, `-` and `_` do not matter."""
        known = self.classes()
        by_name = {name: cls for cls in known.values() for name in cls.names()}
        if fold(name) in by_name:
            return by_name[fold(name)]
        raise ValueError(unknown(self.kind, name, known, by_name))

    def parse(self, text: str, **defaults: Any) -> T:
        """Read `name(field=value, ...)`; `defaults` fill those fields the class has and the text leaves out.

        Values without a name are the first fields, and of another library's name its first parameters.
        """
        name, values, given = read_call(text, self.kind)
        cls = self.find(name)
        fields = {field.name: None for field in dataclasses.fields(cls) if field.init}  # type: ignore[arg-type]
        alias = next((alias for alias in cls.__dict__.get("aliases", ()) if fold(alias) == fold(name)), None)
        alias = alias if isinstance(alias, Alias) else Alias(name, {field: field for field in fields})
        said = alias.put(values, given)
        for key in said:
            if key not in fields:
                raise ValueError(unknown(f"parameter of {cls.name()}", key, sorted(fields), fields))
        filled = {k: v for k, v in defaults.items() if k in fields and v is not None}
        return cls(**dict(alias.defaults) | filled | said)

    def _defined_in(self, module: Any) -> list[type[T]]:
        return [
            cls
            for _, cls in inspect.getmembers(module, inspect.isclass)
            if cls.__module__ == module.__name__
            and issubclass(cls, self.base)
            and not inspect.isabstract(cls)
            and not cls.__name__.startswith("_")
        ]


def unknown(kind: str, name: str, listed: Iterable[str], candidates: Iterable[str]) -> str:
    """A sentence that says a name is unknown, what exists, and what was probably meant."""
    near = difflib.get_close_matches(fold(name), list(candidates), n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"unknown {kind} {name!r}{hint}; there are: {', '.join(listed) or 'none'}"


def split_call(text: str, kind: str) -> tuple[str, dict[str, Any]]:
    """Split `name(a=1, b="x")` into the name and its keyword values, which must be plain literals."""
    name, values, given = read_call(text, kind)
    if values:
        raise ValueError(f"any {kind} must be written name or name(parameter=value, ...), got {text!r}")
    return name, given


def read_call(text: str, kind: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Split `name(1, b="x")` into the name, its values without a name, and those with one: plain literals."""
    name, bracket, rest = (part.strip() for part in text.partition("("))
    if re.fullmatch(r"[A-Za-z_][\w\- ]*", name):  # `multi-krum` too, so the name is no Python identifier
        try:
            node = ast.parse(f"_{bracket or '()'}{rest}", mode="eval").body
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                keys = [str(k.arg or "") for k in node.keywords]
                if all(keys) and len(set(keys)) == len(keys):
                    given = {key: _literal(k.value) for key, k in zip(keys, node.keywords, strict=True)}
                    return name, [_literal(value) for value in node.args], given
        except (SyntaxError, ValueError, TypeError):
            pass
    raise ValueError(f"any {kind} must be written name or name(parameter=value, ...), got {text!r}")


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Name) and node.id.lower() in _CONSTANTS:
        return _CONSTANTS[node.id.lower()]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_literal(node.operand)
    return ast.literal_eval(node)
