"""The records of a store as rows of a table, for pandas and for reports."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from robagg._core.checks import is_number, is_whole
from robagg._core.registry import split_call
from robagg.lab.contents import Contents
from robagg.lab.lines import Record
from robagg.lab.plugins import list_plugins
from robagg.lab.run import shorten
from robagg.lab.store import Store


def load(path: str | Path) -> list[Record]:
    """The records of a store, flat: `pandas.DataFrame(load(path))` has one row per run and one column per field.

    Spec, settings and environment are columns of their own; `method` is the rule without the f that is the run's,
    `mixers` and `core` are its two sides, `rho` is the split's where it has one. `curve` is a
    list of (round, accuracy), `metrics` holds values by name. Where a plugin was edited in between, runs of its other
    sources are left out.

    Example:
        >>> import tempfile
        >>> from robagg.lab import execute, grid
        >>> path = Path(tempfile.mkdtemp()) / "runs.jsonl"
        >>> with Store(path) as store:
        ...     for run in grid(rules="nnm >> tq", attacks="ipm", f=4, rho=[0.5, 1.0], settings={"rounds": 2}):
        ...         store.append(execute(run, device="cpu"))
        >>> [(row["mixers"], row["core"], row["rho"], row["rounds"]) for row in load(path)]
        [('nnm', 'tq', 0.5, 2), ('nnm', 'tq', 1.0, 2)]
    """
    return [flatten(record) for record in read_runs(path).records.values()]


def read_runs(
    path: str | Path, *, without: Sequence[str] = (), look: Callable[[Record], object] | None = None
) -> Contents:
    """The records of a store that are of a run, of one source of their plugins; the notes say what is left out.

    They come in the order of the sweep that made them, however many workers it had.

    Args:
        path: the store.
        without: fields that are left out of the records, such as `trace`.
        look: called with each record before they are.
    """
    if not Path(path).exists():
        raise FileNotFoundError(f"there is no store at {path}")
    contents = Store(path).read(without=without, look=look)
    sound, notes = dict[str, Record](), [*contents.notes]
    for key, record in contents.records.items():
        if fault := find_fault(record):
            notes.append(f"the record {key[:40]!r} in line {contents.lines[key]} is left out: {fault}")
        else:
            sound[key] = record
    ordered = sorted(sound.items(), key=lambda item: item[1].get("place") or 0)
    return keep_newest(Contents(dict(ordered), notes, contents.lines))


def find_fault(record: Record) -> str | None:
    """What keeps a record from being one of a run, in a sentence; None: nothing does."""
    spec = record.get("spec")
    if not isinstance(spec, dict):
        return "it lacks spec"
    for part, kinds in ((spec, SPEC), (record, RECORD)):
        for name, kind in kinds.items():
            if name not in part and not kind.may_lack:
                return f"it lacks {name}"
            if name in part and not kind.holds(part[name]):
                return f"{name} must be {kind.words}, got {part[name]!r:.40}"
    return None


class Kind(NamedTuple):
    """What a field of a record must be."""

    holds: Callable[[Any], bool]
    words: str
    may_lack: bool = False


_TEXT = Kind(lambda value: isinstance(value, str), "a text")
_COUNT = Kind(lambda value: is_whole(value) and value >= 0, "a whole number from 0 on")
_ROUND = Kind(lambda value: value is None or is_whole(value), "a whole number or null")
_NAMED = Kind(lambda value: isinstance(value, dict), "values by name", may_lack=True)
SPEC = {"rule": _TEXT, "attack": _TEXT, "task": _TEXT, "split": _TEXT, "n": _COUNT, "f": _COUNT, "seed": _COUNT} | {
    "settings": _NAMED._replace(may_lack=False)
}
RECORD = {
    "status": Kind(lambda value: value in ("ok", "failed"), "ok or failed"),
    "accuracy": Kind(lambda value: value is None or (is_number(value) and math.isfinite(value)), "a number or null"),
    "diverged": _ROUND,
    "place": _ROUND._replace(may_lack=True),
    "metrics": _NAMED,
    "plugins": _NAMED,
    "environment": _NAMED,
    "error": _TEXT._replace(may_lack=True),
}


def flatten(record: Record) -> Record:
    """One record without nesting; a rule or a split whose text is none of ours is shown as it stands."""
    spec, environment = record["spec"], record.get("environment", {})
    try:
        method, rho = shorten(spec["rule"], spec["f"]), split_call(spec["split"], "split")[1].get("rho")
    except ValueError:
        method, rho = spec["rule"], None
    front, _, core = method.rpartition(" >> ")
    flat: Record = {name: value for name, value in spec.items() if name != "settings"} | spec["settings"]
    flat |= {"method": method, "mixers": front, "core": core, "rho": rho}
    flat |= {name: value for name, value in record.items() if name not in ("robagg", "spec", "environment")}
    return {**flat, "version": record["robagg"], **environment}


def keep_newest(contents: Contents) -> Contents:
    """The same without runs of another source of their plugins, which a table would take for more seeds.

    Kept is the source that is loaded, or else the last that came to a result; and of a run that failed under one
    key and was done under another, the result.
    """
    loaded = {plugin.digest for plugin in list_plugins()}
    alike: dict[str, list[Record]] = {}
    for record in contents.records.values():
        if isinstance(record.get("spec"), dict):
            alike.setdefault(json.dumps({**record["spec"], "seed": None}, sort_keys=True), []).append(record)
    left = {run["key"] for runs in alike.values() for run in _find_others(runs, loaded)}
    notes = [f"{len(left)} run{'s' * (len(left) > 1)} of another source of a plugin left out"] if left else []
    return Contents({key: r for key, r in contents.records.items() if key not in left}, [*contents.notes, *notes])


def _find_others(runs: list[Record], loaded: set[str]) -> list[Record]:
    """Of runs that differ in their seed or a plugin's source, those of other sources, and failures since done again."""
    known = [run for run in runs if "plugins" in run]
    now = [run for run in known if loaded.issuperset(run["plugins"].values())] or known
    if not now:
        return []
    source = sorted(now, key=lambda run: (run["status"] == "ok", run.get("finished") or ""))[-1]["plugins"]
    own = [run for run in runs if run.get("plugins", source) == source]
    done = {run["spec"].get("seed") for run in own if run["status"] == "ok"}
    kept = {run["key"] for run in own if run["status"] == "ok" or run["spec"].get("seed") not in done}
    return [run for run in runs if run["key"] not in kept]
