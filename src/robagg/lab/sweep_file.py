"""Reads a sweep from a small TOML file: lists are axes."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robagg._core.registry import unknown
from robagg.lab.grids import grid
from robagg.lab.plugins import load_entry_points, load_plugin
from robagg.lab.run import Run

_AXES = {
    "task": "tasks",
    "rule": "rules",
    "attack": "attacks",
    "split": "splits",
    "rho": "rho",
    "n": "n",
    "f": "f",
    "seed": "seeds",
    "mixer": "mixers",
    "pre-aggregator": "mixers",
    "strengths": "strengths",
    "settings": "settings",
}
_SPELLINGS = _AXES | {f"{name}s": axis for name, axis in _AXES.items() if axis != name}
_OTHERS = ("store", "plugins", "grid")


@dataclass(frozen=True)
class Sweep:
    """What a sweep file asks for.

    Args:
        runs: every run, each once.
        store: where the records go.
        plugins: paths of the plugins.
        notes: what is to be known of the file, in sentences.
    """

    runs: list[Run]
    store: Path
    plugins: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)


def read_sweep(path: str | Path, *, plugins: Sequence[str | Path] = (), store: str | Path | None = None) -> Sweep:
    """Read a sweep file and load its plugins.

    Keys are the axes of `grid`, in singular or plural (task, rules, attacks, f, rho, seeds, pre-aggregators, ...),
    with tables `settings` and `strengths`; each `[[grid]]` is a grid of its own that starts from what stands above.
    `plugins` and `store` are paths from the file's folder and from the current one.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "small.toml"
        >>> _ = file.write_text('''
        ... rules = ["tq", "cm"]
        ... attacks = ["ipm", "lf"]
        ... f = [4, 6]
        ... settings = { rounds = 100 }
        ... ''')
        >>> sweep = read_sweep(file)
        >>> len(sweep.runs), sweep.store.as_posix()
        (8, 'runs/small.jsonl')
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"there is no sweep file at {file}")
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{file} must be TOML in UTF-8, got a file that is not: {error}") from error
    listed = content.pop("plugins", [])
    listed = [listed] if isinstance(listed, str) else listed
    if not isinstance(listed, list) or not all(isinstance(plugin, str) for plugin in listed):
        raise ValueError(f"{file}: plugins must be paths of files, such as plugins = ['mine.py'], got {listed!r}")
    if not isinstance(content.get("store", ""), str):
        raise ValueError(f"{file}: store must be the path of a file, got {content['store']!r}")
    named = [file.parent / plugin for plugin in listed]
    paths = list(dict.fromkeys(str(Path(plugin).resolve()) for plugin in [*named, *plugins]))
    load_entry_points()
    for plugin in paths:
        load_plugin(plugin)
    target = Path(store or content.pop("store", f"runs/{file.stem}.jsonl"))
    content.pop("store", None)
    blocks = content.pop("grid", [{}])
    if not isinstance(blocks, list) or not blocks or not all(isinstance(block, dict) for block in blocks):
        raise ValueError(f"{file}: a grid must be headed [[grid]], with two brackets, got grid = {blocks!r}")
    try:
        above = _read_axes(content)
        runs = [run for block in blocks for run in grid(**_merge(above, _read_axes(block)))]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{file}: {error}") from error
    unique = {run.key: run for run in runs}
    twice = len(runs) - len(unique)
    notes = [f"{twice} run{'s' * (twice > 1)} of the file's grids overlap and are done once"] if twice else []
    return Sweep(list(unique.values()), target, tuple(paths), notes)


def _read_axes(table: dict[str, Any]) -> dict[str, Any]:
    axes: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _SPELLINGS:
            raise ValueError(unknown("key of a sweep", key, [*_AXES, *_OTHERS], [*_SPELLINGS, *_OTHERS]))
        if _SPELLINGS[key] in axes:
            raise ValueError(f"{key!r} must be given once, got it in two spellings")
        axes[_SPELLINGS[key]] = value
    return axes


def _merge(above: dict[str, Any], block: dict[str, Any]) -> dict[str, Any]:
    """A block's axes take the place of those above; its settings and strengths join them."""
    merged = above | block
    for one, other in (("rho", "splits"), ("splits", "rho")):  # either says how the data are split
        if one in block and other not in block:
            merged.pop(other, None)
    for name in ("settings", "strengths"):
        if name in above and name in block:
            merged[name] = above[name] | block[name]
    if "rules" not in merged:
        raise ValueError("a sweep must have rules, such as rules = ['tq', 'cm'], got none")
    return merged
