"""Rules, pre-aggregators, attacks, tasks and splits from a user's own file, or from an installed package.

A plugin is a Python file, or a module named by an entry point of the group `robagg.plugins`. Every class it defines
that is a rule, a pre-aggregator, an attack, a task or a split is known by its name from then on, as if it stood in the
package. The hash of its source goes into the key of each run that uses one of its names.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import inspect
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from robagg._core.registry import Registry
from robagg._core.rule import Rule, stages
from robagg.attacks import Mixed, Varying, attacks
from robagg.splits import splits
from robagg.tasks.base import tasks

GROUP = "robagg.plugins"
REGISTRIES: tuple[Registry[Any], ...] = (stages, attacks, tasks, splits)


@dataclass(frozen=True)
class Plugin:
    """A plugin that was loaded."""

    source: str
    """The file, or the entry point's name and value."""
    module: str
    digest: str
    """SHA-256 of what was executed."""
    names: tuple[str, ...]
    """What it defines."""


_loaded: dict[str, Plugin] = {}
"""By module name."""
_digests: WeakKeyDictionary[type[Any], str] = WeakKeyDictionary()
"""The hash that a class was made from: a file that is executed again makes new classes, and the old keep theirs."""


def load_plugin(path: str | Path) -> Plugin:
    """Execute a Python file and make the classes in it known; a file that changed since is executed again.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is not Python, nothing in it is a rule, a pre-aggregator, an attack, a task or a split, or a
            name is taken.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "mine.py"
        >>> _ = file.write_text('''
        ... from dataclasses import dataclass
        ... from robagg.rules.cm import CM
        ...
        ... @dataclass(frozen=True)
        ... class MyMedian(CM):
        ...     pass
        ... ''')
        >>> load_plugin(file).names
        ('mymedian',)
        >>> from robagg import parse
        >>> parse("my-median", f=2)
        MyMedian(f=2)
        >>> forget(file)
    """
    file = Path(path).expanduser().resolve()
    if not file.is_file():
        raise FileNotFoundError(f"a plugin is a Python file, but there is none at {file}")
    # The bytes that are hashed are the bytes that are executed: the file may be edited at any moment.
    code = file.read_bytes()
    digest = hashlib.sha256(code).hexdigest()
    name = _name_module(file)
    if name in _loaded and _loaded[name].digest == digest:
        return _loaded[name]
    forget(file)
    try:
        program = compile(code, str(file), "exec")
    except SyntaxError as error:
        raise ValueError(f"the plugin {file} is not valid Python: {error}") from error
    module = ModuleType(name)
    module.__file__ = str(file)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        exec(program, module.__dict__)
        return _admit(module, str(file), digest)
    except BaseException:
        del sys.modules[name]
        raise


def load_entry_points() -> list[Plugin]:
    """Load what installed packages offer in the group `robagg.plugins`; one that fails warns and is left out."""
    plugins = []
    for point in importlib.metadata.entry_points(group=GROUP):
        try:
            target = point.load()
            module = target if isinstance(target, ModuleType) else sys.modules[target.__module__]
            if module.__name__ not in _loaded:
                _admit(module, f"{point.name} = {point.value}", _hash_module(module))
            plugins.append(_loaded[module.__name__])
        except Exception as error:
            warnings.warn(f"the plugin {point.name} = {point.value} cannot be used: {error}", stacklevel=2)
    return plugins


def forget(path: str | Path) -> None:
    """Take the names of a plugin file out again; nothing happens where it was not loaded."""
    name = _name_module(Path(path).expanduser().resolve())
    if name in _loaded:
        for known in _loaded.pop(name).names:
            for registry in REGISTRIES:
                added = registry.classes().get(known)
                if added is not None and added.__module__ == name:
                    registry.remove(known)
        sys.modules.pop(name, None)


def list_plugins() -> list[Plugin]:
    """The plugins loaded so far."""
    return list(_loaded.values())


def find_plugins(thing: object) -> dict[str, str]:
    """The plugin classes of an object and of those within it, however deep, each with the hash of its plugin.

    >>> from robagg import TQ
    >>> find_plugins(TQ(f=2))
    {}
    """
    used = {cls.__name__: _digests[cls] for cls in type(thing).__mro__ if cls in _digests}
    rule = getattr(thing, "rule", None)  # CTMA's base
    within = thing.parts if isinstance(thing, Mixed | Varying) else ()
    for part in (*within, *([rule] if isinstance(rule, Rule) else [])):
        used |= find_plugins(part)
    return used


def _admit(module: ModuleType, source: str, digest: str) -> Plugin:
    found: list[tuple[Registry[Any], type[Any]]] = []
    classes: list[tuple[str, type[Any]]] = inspect.getmembers(module, inspect.isclass)
    defined = [*dict.fromkeys(cls for _, cls in classes if cls.__module__ == module.__name__)]
    for cls in defined:
        if cls.__name__.startswith("_") or inspect.isabstract(cls):
            continue
        for registry in REGISTRIES:
            if issubclass(cls, registry.base):
                _check(cls, registry, source, [other for beside, other in found if beside is registry])
                found.append((registry, cls))
    if not found:
        lacking = [
            f"{cls.__name__} does not define {', '.join(sorted(cls.__abstractmethods__))}"
            for cls in defined
            if inspect.isabstract(cls) and any(issubclass(cls, registry.base) for registry in REGISTRIES)
        ]
        wanted = "none of its classes derives from Rule, Mixer, Attack, Task or Split"
        raise ValueError(f"the plugin {source} defines nothing to use: {'; '.join(lacking) or wanted}")
    for registry, cls in found:
        registry.add(cls)
    _digests.update(dict.fromkeys(defined, digest))
    plugin = Plugin(source, module.__name__, digest, tuple(sorted(cls.name() for _, cls in found)))
    _loaded[module.__name__] = plugin
    return plugin


def _check(cls: type[Any], registry: Registry[Any], source: str, before: Sequence[type[Any]]) -> None:
    """Whether a class can be taken, with those `before` it in the same plugin."""
    parameters = cls.__dict__.get("__dataclass_params__")
    if parameters is None or not parameters.frozen:
        raise ValueError(f"{cls.__name__} in the plugin {source} must be decorated with @dataclass(frozen=True)")
    for known in (*registry.classes().values(), *before):
        for name in set(cls.names()) & set(known.names()):
            owner = _loaded[known.__module__].source if known.__module__ in _loaded else "robagg itself"
            owner = f"its {known.__name__}" if known in before else owner
            raise ValueError(
                f"the plugin {source} defines a {registry.kind} {name!r}, but {owner} has one of that name; "
                "choose another"
            )


def _name_module(file: Path) -> str:
    return f"robagg_plugin_{file.stem}_{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"


def _hash_module(module: ModuleType) -> str:
    """The hash of a module's file, or of all Python files of a package."""
    if module.__file__ is None:
        raise ValueError(f"{module.__name__} has no source file to take the hash of")
    file = Path(module.__file__)
    files = sorted(file.parent.rglob("*.py")) if file.name == "__init__.py" else [file]
    digest = hashlib.sha256()
    for part in files:
        digest.update(part.relative_to(file.parent).as_posix().encode() + b"\0" + part.read_bytes() + b"\0")
    return digest.hexdigest()
