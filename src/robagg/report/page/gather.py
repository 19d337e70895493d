"""What the page knows of a store: one line per run, and curves, packed until somebody asks for them."""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from robagg._core.checks import is_number
from robagg._core.registry import Registry, split_call
from robagg._core.rule import stages
from robagg.attacks import attacks
from robagg.lab.lines import Record
from robagg.lab.loading import flatten, read_runs
from robagg.report.measures import list_measures, read_measure
from robagg.report.page.labels import LabelCounts
from robagg.report.tables import STUDENT
from robagg.training.trace import CURVES

BUDGET = 14_000_000
"""Bytes of data in a page, which may have 15 MB in all; with more, points of curves are left out, and then curves."""
MOST, FEWEST = 600, 10
"""Points of a curve before and after that."""
SAMPLE = 50
"""Runs by which the number of points is chosen."""
TRACE = tuple(name for name in CURVES if name != "weights")


def gather(store: str | Path, *, data: str | Path | None = None, labels: bool = True) -> dict[str, Any]:
    """All that the page shows, as values that JSON takes.

    Args:
        store: the file of records.
        data: the folder of the data sets, to count each client's labels.
        labels: whether to count them; loading a large data set takes its time.
    """
    contents = read_runs(store)
    notes, counts, environments = [*map(hide_home, contents.notes)], LabelCounts(data, wanted=labels), Shared()
    runs, records = [], []
    for record in contents.records.values():
        try:
            run = describe(record)
            run["environment"] = environments.add(record.get("environment") or {})
            run["labels"] = counts.add(run)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = hide_home(f"{type(error).__name__}: {error}")
            notes.append(f"the record {str(record.get('key'))[:40]!r} is not understood: {reason}")
            continue
        runs.append(run)
        records.append(record)
    flat = [flatten(record) for record in records]
    measures = list_measures(flat)
    for run, record in zip(runs, flat, strict=True):
        run["measures"] = [_shorten(read_measure(record, measure)) for measure in measures]
    known = {
        "name": Path(store).name,
        "runs": fold(runs),
        "measures": [
            {name: getattr(measure, name) for name in ("name", "words", "lower", "percent", "lost")}
            for measure in measures
        ],
        "student": STUDENT,
        "environments": environments.values,
        "labels": counts.tables,
        "words": explain_names(runs),
    }
    known = {name: finite(value) for name, value in known.items()}
    details, points = pack_all(records, BUDGET - len(json.dumps(known, separators=(",", ":"))))
    if points < MOST and details:
        notes.append(f"curves are thinned to {points} points each, for the size of this page")
    if missing := sum(text == "" for text in details):
        notes.append(f"the curves of the last {missing} runs are left out, for the size of this page")
    return known | {"details": details, "notes": notes}


def fold(runs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, list[Any]]]:
    """Runs as columns, with each value once and its places where many runs have it.

    >>> fold([{"seed": 0, "rule": "tq"}, {"seed": 1, "rule": "tq"}])
    {'seed': {'values': [0, 1]}, 'rule': {'values': ['tq'], 'at': [0, 0]}}
    """
    columns: dict[str, dict[str, list[Any]]] = {}
    for name in runs[0] if runs else ():
        shared, values = Shared(), [run[name] for run in runs]
        at = [shared.add(value) for value in values]
        folded = len(shared.values) <= len(runs) / 2
        columns[name] = {"values": shared.values, "at": at} if folded else {"values": values}
    return columns


def describe(record: Record) -> dict[str, Any]:
    """One run in a line: its spec, and what came of it; without the traceback and the home folder."""
    spec, flat = record["spec"], flatten(record)
    run: dict[str, Any] = {name: str(spec[name]) for name in ("rule", "attack", "task", "split")}
    run |= {name: int(spec[name]) for name in ("n", "f", "seed")}
    run |= {name: flat[name] for name in ("method", "mixers", "core", "rho")}
    run |= {name: str(record.get(name) or "") for name in ("key", "status", "finished")}
    run["error"] = hide_home(str(record.get("error") or ""))
    run |= {name: _number(record.get(name)) for name in ("accuracy", "diverged", "done", "seconds")}
    run |= {"settings": dict(spec.get("settings") or {}), "plugins": dict(record.get("plugins") or {})}
    run |= {"notes": [hide_home(str(note)) for note in record.get("notes") or []]}
    return run


def hide_home(text: str) -> str:
    """The text with ~ for the user's home folder: pages are published, and it holds a name."""
    return text.replace(str(Path.home()), "~")


def pack_all(records: Sequence[Record], budget: float = BUDGET) -> tuple[list[str | None], int]:
    """The curves of all runs, with as many points as the budget allows, and how many that is at most.

    Where it does not allow the fewest points, the last runs have an empty text.
    """
    points, some = MOST, records[:: max(1, len(records) // SAMPLE)]
    share = budget * len(some) / max(1, len(records))
    while points > FEWEST and _count_bytes(pack_details(record, points) for record in some) > share:
        points = max(FEWEST, points * 4 // 5)
    while _count_bytes(packed := [pack_details(record, points) for record in records]) > budget and points > FEWEST:
        points = max(FEWEST, points * 4 // 5)
    for k, text in enumerate(packed):
        budget -= len(text or "")
        if text and budget < 0:
            packed[k] = ""
    return packed, points


def _count_bytes(packed: Iterable[str | None]) -> int:
    return sum(len(text or "") for text in packed)


def pack_details(record: Record, points: int) -> str | None:
    """Curve and trace of a run, None where it has none."""
    try:
        trace, n = record.get("trace") or {}, int(record["spec"]["n"])
        curve = [[int(t), _number(value)] for t, value in record.get("curve") or []]
        keep = thin(len(trace.get("rounds") or []), points)
        details: dict[str, Any] = {
            "curve": [curve[k] for k in thin(len(curve), points)],
            **{name: None if trace.get(name) is None else [_number(trace[name][k]) for k in keep] for name in TRACE},
            "most": _number(trace.get("most")) or 1.0,
            "weights": None,
        }
        if trace.get("weights"):
            levels = zlib.decompress(base64.b64decode(trace["weights"]))
            details["weights"] = [level for k in keep for level in levels[k * n : (k + 1) * n]]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, zlib.error):
        return None
    return deflate(details) if details["curve"] or details["rounds"] else None


def deflate(value: Any) -> str:
    """Base64 of deflated JSON, which a browser unpacks by itself."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def thin(count: int, points: int) -> list[int]:
    """Which of `count` points are kept: every k-th from the last one back, so that the end is always there.

    >>> thin(10, 4)
    [0, 3, 6, 9]
    >>> thin(3, 4)
    [0, 1, 2]
    """
    step = max(1, math.ceil(count / points))
    return list(range(count - 1, -1, -step))[::-1]


def explain_names(runs: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """A sentence for each rule and each attack that is used, from its documentation."""
    words: dict[str, dict[str, str]] = {"rule": {}, "attack": {}}
    for run in runs:
        for part in str(run["rule"]).split(" >> "):
            _explain(stages, part, words["rule"])
        _explain(attacks, run["attack"], words["attack"])
    return words


def _explain(registry: Registry[Any], text: str, words: dict[str, str]) -> None:
    try:
        name = split_call(text, registry.kind)[0]
        if name not in words:
            words[name] = (registry.find(name).__doc__ or "").strip().split("\n")[0]
    except ValueError:
        return  # a plugin's name, which nobody here can explain


def finite(value: Any) -> Any:
    """The same with None for numbers that are not finite, which JSON does not know."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: Any) -> float | None:
    """A number as it is, None for one that is not finite, and None as None; anything else is an error."""
    if value is None or is_number(value):
        return value if value is None or math.isfinite(value) else None
    raise TypeError(f"a value must be a number, got {value!r}")


def _shorten(value: Any) -> float | None:
    """A number to six digits, which are more than anybody reads."""
    number = _number(value)
    return None if number is None else float(f"{number:.6g}")


class Shared:
    """Values that many runs have in common, each kept once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._places: dict[str, int] = {}

    def add(self, value: Any) -> int:
        """Where the value stands."""
        text = json.dumps(value, sort_keys=True)
        if text not in self._places:
            self._places[text] = len(self.values)
            self.values.append(value)
        return self._places[text]
