"""Which runs a table shows where a plugin was edited in between."""

from __future__ import annotations

import json

from robagg.lab.store import Contents, Record
from robagg.plugins import list_plugins


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
    told = [f"{len(left)} run{'s' * (len(left) > 1)} of another source of a plugin left out"] if left else []
    return Contents({key: r for key, r in contents.records.items() if key not in left}, [*contents.notes, *told])


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
