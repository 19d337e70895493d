"""The records of a store as rows of a table, for pandas and for reports."""

from __future__ import annotations

import json
from pathlib import Path

from robagg._core.registry import split_call
from robagg.lab.plugins import list_plugins
from robagg.lab.run import shorten
from robagg.lab.store import Contents, Record, Store


def load(path: str | Path) -> list[Record]:
    """The records of a store, flat: `pandas.DataFrame(load(path))` has one row per run and one column per field.

    Spec, settings and environment are columns of their own; `method` is the rule without the f that is the run's,
    `mixers` and `core` are its two sides, `rho` is the split's where it has one. `curve` is a
    list of (round, accuracy). Where a plugin was edited in between, runs of its other sources are left out.

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
    return flatten_all(read_runs(path))[0]


def read_runs(path: str | Path) -> Contents:
    """The records of a store that are of a run, of one source of their plugins; the notes say what is left out."""
    if not Path(path).exists():
        raise FileNotFoundError(f"there is no store at {path}")
    contents = Store(path).read()
    sound, notes = dict(contents.records), [*contents.notes]
    for key, record in contents.records.items():
        if lacking := [name for name in ("spec", "status", "accuracy", "diverged") if name not in record]:
            notes.append(f"the record {key[:40]!r} is not understood: it lacks {', '.join(lacking)}")
            del sound[key]
    return keep_newest(Contents(sound, notes))


def flatten_all(contents: Contents) -> tuple[list[Record], list[str]]:
    """The records without nesting, and a sentence for each that is not understood."""
    flat, notes = [], []
    for key, record in contents.records.items():
        try:
            flat.append(flatten(record))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            notes.append(f"the record {key[:40]!r} is not understood: {type(error).__name__}: {error}")
    return flat, notes


def flatten(record: Record) -> Record:
    """One record without nesting."""
    spec, environment = record["spec"], record.get("environment", {})
    method = shorten(spec["rule"], spec["f"])
    front, _, core = method.rpartition(" >> ")
    flat: Record = {name: value for name, value in spec.items() if name != "settings"} | spec["settings"]
    flat |= {"method": method, "mixers": front, "core": core, "rho": split_call(spec["split"], "split")[1].get("rho")}
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
