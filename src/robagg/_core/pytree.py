"""What one client sent, as leaves: trees of dicts, lists and arrays taken apart, compared, and put together again.

A client may send anything. What cannot be read is a fault of its row and never an error, and no tree is followed much
further than those of most rows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import chain, islice
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from robagg._core.leaf import ARRAYS, FLOATS, LeafSpec, UnusableError, cut, read_leaf

Path = tuple[str | int | tuple[str, str], ...]
"""The way to a node: keys of dicts (see `name_key`) and places in lists."""


class ContainerSpec(NamedTuple):
    """What a dict or a list is."""

    kind: str
    """"dict" or "list", which must agree between clients."""
    types: tuple[int, ...] = ()
    """Its own class and those of its keys, by identity: a class of a client's own may deny whatever it is asked."""

    def __str__(self) -> str:
        return self.kind


Spec = LeafSpec | ContainerSpec
Signature = tuple[tuple[Path, Spec], ...]
"""Each node's path and spec, in the order in which they came."""
Form = frozenset[tuple[Path, Spec]]
"""What of a signature must agree between clients: neither the order of keys nor whether a list is a tuple."""

DEEP = 100
MANY, MOST = 10_000, 10_000_000
"""So many nodes of a row are read at first, and at most."""
LONG = 1000
"""The most characters of a key."""


class LongKeyError(ValueError):
    """A key that no row may have. Its message ends the sentence `row 3 has ...`."""


class Entry(NamedTuple):
    """One row taken apart."""

    signature: Signature = ()
    leaves: Mapping[Path, Tensor] = MappingProxyType({})
    fault: str = ""
    """Why it cannot be used."""
    endless: bool = False
    """Whether it was left because it has too many nodes."""


def read_rows(rows: Sequence[Any]) -> list[Entry]:
    """Every row taken apart."""
    limit = MANY
    entries = [read_row(row, limit) for row in rows]
    # Rows of one form have as many nodes, so that where no more than half are longer, those are not the majority.
    while 2 * sum(entry.endless for entry in entries) > len(rows) and limit < MOST:
        limit *= 10
        entries = [read_row(row, limit) if entry.endless else entry for row, entry in zip(rows, entries, strict=True)]
    return entries


def read_row(row: Any, limit: int) -> Entry:
    """A row taken apart, as far as its first fault."""
    signature: list[tuple[Path, Spec]] = []
    spec: Spec
    leaves: dict[Path, Tensor] = {}
    path: Path = ()
    try:
        for path, node, kind in walk(row):
            if len(signature) >= limit:
                return Entry(fault=f"holds more than {limit} arrays, dicts and lists", endless=True)
            if len(path) >= DEEP:
                return Entry(fault=f"is nested {DEEP} deep or more")
            if kind is None:
                spec, leaves[path] = read_leaf(node)
            else:
                keys = islice(node, limit) if kind == "dict" else ()
                spec = ContainerSpec(kind, (id(type(node)), *(id(type(key)) for key in keys)))
            signature.append((path, spec))
    except LongKeyError as e:
        return Entry(fault=f"has {e}")
    except UnusableError as e:
        return Entry(fault=f"has {describe_path(path)} {e}")
    except (Exception, SystemExit) as e:  # whatever a client's object raises is its own row's matter
        return Entry(fault=f"cannot be read{f' at {describe_path(path)}' if path else ''}: {cut(type(e).__name__)}")
    return Entry(tuple(signature), leaves)


def walk(row: Any) -> Iterator[tuple[Path, Any, str | None]]:
    """Every node of a tree and what `container_kind` says of it, a container first; what lies too deep is left out."""
    kind = container_kind(row)
    yield (), row, kind
    if kind is not None:
        yield from _walk_inside(row, kind, ())


def _walk_inside(node: Any, kind: str, path: Path) -> Iterator[tuple[Path, Any, str | None]]:
    for key in node if kind == "dict" else range(len(node)):
        child = node[key]
        below = (*path, name_key(key) if kind == "dict" else key)
        inner = container_kind(child)
        yield below, child, inner
        if inner is not None and len(below) < DEEP:
            yield from _walk_inside(child, inner, below)


def container_kind(node: Any) -> str | None:
    """Which kind of container a node is; None for a leaf."""
    if isinstance(node, ARRAYS):  # asked first: most nodes are leaves
        return None
    if isinstance(node, Mapping):
        return "dict"
    return "list" if isinstance(node, (list, tuple)) else None


def name_key(key: Any) -> str | tuple[str, str]:
    """A key as it stands in a path, in plain text: one of a client's own class could deny that it equals another.

    >>> name_key("w"), name_key(1), name_key(np.int8(1)), name_key(True)
    ('w', ('int', '1'), ('int', '1'), ('bool', 'True'))
    """
    if isinstance(key, str):
        text = str.__str__(key)
        name: str | tuple[str, str] = text
    else:
        whole = isinstance(key, int | np.integer) and not isinstance(key, bool)
        text = str(int(key)) if whole else repr(key)
        name = ("int" if whole else cut(type(key).__name__), text)
    if len(text) > LONG:  # it stands in the path of each node below it
        raise LongKeyError(f"a key of {len(text)} characters where at most {LONG} may be")
    return name


def fill(node: Any, path: Path, make: Callable[[Path], Any]) -> Any:
    """The same tree with every leaf made by `make`."""
    kind = container_kind(node)
    if kind is None:
        return make(path)
    if kind == "dict":
        names = {key: name_key(key) for key in node}
        items = {_plain(key, name): fill(node[key], (*path, name), make) for key, name in names.items()}
        return OrderedDict(items) if isinstance(node, OrderedDict) else items
    children = [fill(child, (*path, i), make) for i, child in enumerate(node)]
    if isinstance(node, list):
        return children
    return type(node)(*children) if hasattr(node, "_fields") else tuple(children)


def _plain(key: Any, name: str | tuple[str, str]) -> Any:
    """A key as it is given back: texts and whole numbers as Python's own, since they may be of a client's class."""
    if isinstance(key, Enum):
        return key
    if isinstance(name, str):
        return name
    return int(name[1]) if name[0] == "int" else key


def in_order(paths: Iterable[Path]) -> list[Path]:
    """The paths in an order that does not depend on that of the keys in some row."""
    return sorted(paths, key=lambda path: [(type(p).__name__, str(p)) for p in path])


def describe_path(path: Path) -> str:
    parts = (cut(p[1] if isinstance(p, tuple) else str(p)) for p in path)
    return repr(cut("/".join(parts))) if path else "its vector"


def agree(entries: Sequence[Entry]) -> tuple[int, dict[int, str]]:
    """The row that looks as most do, and why each row that has not the form of most is rejected."""
    alike: dict[Signature, list[int]] = {}
    reasons: dict[int, str] = {}
    for i, entry in enumerate(entries):
        if entry.fault:
            reasons[i] = entry.fault
        else:
            alike.setdefault(entry.signature, []).append(i)
    forms: dict[Form, list[list[int]]] = {}
    for signature, rows in alike.items():
        form = _canonical(signature)
        if len({path for path, _ in signature}) < len(signature):
            reasons |= dict.fromkeys(rows, "has two keys that read alike")
        else:
            forms.setdefault(form, []).append(rows)
    if not forms:
        raise TypeError(f"row 0 {reasons[0]}")
    form = max(forms, key=lambda form: sum(map(len, forms[form])))
    model = max(forms[form], key=len)[0]
    _check_form(form, model)
    for other in forms:
        if other != form:
            difference = describe_difference(other, form)
            reasons |= dict.fromkeys(chain(*forms[other]), difference)
    count, n = len(entries) - len(reasons), len(entries)
    if 2 * count <= n:
        odd = min(reasons)
        raise ValueError(
            f"more than half of the rows must have one structure, got {count} of {n}: row {odd} {reasons[odd]}"
        )
    return model, dict(sorted(reasons.items()))


def _canonical(signature: Signature) -> Form:
    return frozenset(
        (path, spec if isinstance(spec, LeafSpec) else ContainerSpec(spec.kind)) for path, spec in signature
    )


def _check_form(form: Form, row: int) -> None:
    """Most rows agree on this form: is it one we can take?"""
    specs = {path: spec for path, spec in form if isinstance(spec, LeafSpec)}
    if not specs:
        raise ValueError(f"row {row} holds no tensor or array")
    if not any(spec.dtype in FLOATS or getattr(spec.dtype, "kind", "") == "f" for spec in specs.values()):
        raise TypeError(f"row {row} must hold floating-point numbers, got only {specs[in_order(specs)[0]].dtype}")
    devices = {str(spec.device or "cpu") for spec in specs.values()}
    if len(devices) > 1:
        raise ValueError(f"row {row}: all tensors must be on one device, got {', '.join(sorted(devices))}")


def describe_difference(form: Form, most: Form) -> str:
    """In words, the first thing in which a row's structure is not that of most rows."""
    got, want = dict(form), dict(most)
    for path in in_order(want):
        if path not in got:
            return f"lacks {describe_path(path)}"
        if got[path] != want[path]:
            has = f"has {describe_path(path)}" if path or isinstance(want[path], LeafSpec) else "comes"
            return f"{has} as {got[path]} where most have {want[path]}"
    extra = next(path for path in in_order(got) if path not in want)
    return f"has {describe_path(extra)}, which most rows lack"
