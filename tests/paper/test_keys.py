"""Keys of committed records: what is stored is found again, whatever moves in the code."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import robagg.paper
from robagg.lab import Run
from robagg.lab.lines import Record
from robagg.lab.plugins import load_plugin
from robagg.lab.store import Store

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "studies" / "tq-paper"
PLUGINS = [Path(robagg.paper.__file__).with_name("tq_true.py"), STUDY / "tq_varied.py"]
LOGS = ("evaluation.jsonl", "protocol.jsonl", "running-statistics.jsonl", "noise.jsonl", "static.jsonl")
"""Lines of scripts, which are no records of runs."""


def list_stores() -> list[Path]:
    stores = [*(ROOT / "results").rglob("*.jsonl"), *(STUDY / "results").glob("*.jsonl")]
    return sorted(path for path in stores if path.name not in LOGS)


def list_records() -> Iterator[tuple[Path, Record]]:
    for path in list_stores():
        yield from ((path, record) for record in Store(path).read().records.values())


def test_the_key_of_every_committed_record_is_what_the_code_makes_of_its_run() -> None:
    for plugin in PLUGINS:
        load_plugin(plugin)
    records = [(path, record, Run.from_json(record["spec"])) for path, record in list_records()]
    changed = [f"{path.name}: {run}" for path, record, run in records if run.key != record["key"]]
    by_plugin = sum(bool(run.plugins) for _, _, run in records)
    assert all(run.plugins == record["plugins"] for _, record, run in records)
    assert (by_plugin, changed) == (209, [])
    assert len(records) >= 4362, "records may be added and are not taken away"


def test_keys_that_were_rewritten_are_listed_beside_their_stores() -> None:
    """Of the runs whose keys hold the hash of a plugin that moved, and of no others."""
    listed = 0
    for store in list_stores():
        path = store.with_name("keys.csv")
        rows = list(csv.DictReader(path.read_text().splitlines())) if path.exists() else []
        moved = {row["old"]: row["new"] for row in rows if row["store"] == store.name}
        records = Store(store).read().records
        assert {*moved.values()} == {key for key, record in records.items() if record["plugins"]}
        assert not {*moved} & {*records}
        listed += len(moved)
    assert listed == 209
