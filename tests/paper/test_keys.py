"""Keys of committed records: what is stored is found again, whatever moves in the code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import robagg.paper
from robagg.lab import Run
from robagg.lab.plugins import load_plugin
from robagg.lab.store import Record, Store

ROOT = Path(__file__).parents[2]
PLUGINS = [Path(robagg.paper.__file__).with_name(name) for name in ("tq_true.py", "tq_varied.py")]
LOGS = ("evaluation.jsonl", "protocol.jsonl", "running-statistics.jsonl", "noise.jsonl")
"""Lines of scripts, which are no records of runs."""


def list_records() -> Iterator[tuple[Path, Record]]:
    for path in sorted((ROOT / "results").rglob("*.jsonl")):
        if path.name not in LOGS:
            yield from ((path, record) for record in Store(path).read().records.values())


def test_the_key_of_every_committed_record_is_what_the_code_makes_of_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for plugin in PLUGINS:
        load_plugin(plugin)
    records = list(list_records())
    # A plugin's hash is part of keys: of records made with these two files it is that of the files as they were.
    moved, changed = 0, []
    for path, record in records:
        run = Run.from_json(record["spec"])
        with monkeypatch.context() as patch:
            if run.plugins:
                moved += 1
                patch.setattr(Run, "plugins", record["plugins"])
            if run.key != record["key"]:
                changed.append(f"{path.name}: {run}")
    assert (len(records), moved, changed) == (2569, 209, [])
