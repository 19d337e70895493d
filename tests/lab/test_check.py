"""A store is checked as a whole, and one odd record costs only itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from robagg.cli.app import app
from robagg.lab import Options, Store, execute, grid, load, sweep
from robagg.lab.checking import check_store
from robagg.lab.plugins import forget, load_plugin
from robagg.report import render, tabulate

PLUGIN = '''
from dataclasses import dataclass
from robagg import Mean


@dataclass(frozen=True)
class MyMean(Mean):
    """The mean again."""
'''


def make(path: Path, **changed: Any) -> dict[str, Any]:
    """A store with a record of a run of CM, and one of TQ that is changed."""
    odd, good = (execute(run, device="cpu") for run in grid(rules=["tq", "cm"], f=2, settings={"rounds": 1}))
    spec = odd["spec"] | {name: value for name, value in changed.items() if name in odd["spec"]}
    odd |= {"spec": {k: v for k, v in spec.items() if v is not ...}} | {k: v for k, v in changed.items() if k in odd}
    with Store(path) as store:
        store.append(odd)
        store.append(good)
    return odd


ODD = [
    ({"seed": ...}, "it lacks seed"),
    ({"seed": "0"}, "seed must be a whole number from 0 on, got '0'"),
    ({"attack": ["ipm"]}, "attack must be a text, got ['ipm']"),
    ({"rule": {"tq": 1}}, "rule must be a text, got {'tq': 1}"),
    ({"split": None}, "split must be a text, got None"),
    ({"settings": [1]}, "settings must be values by name, got [1]"),
    ({"accuracy": "high"}, "accuracy must be a number or null, got 'high'"),
    ({"status": "fine"}, "status must be ok or failed, got 'fine'"),
    ({"diverged": 0.5}, "diverged must be a whole number or null, got 0.5"),
]


@pytest.mark.parametrize(("changed", "fault"), ODD)
def test_an_odd_record_is_named_and_left_out_and_the_rest_is_shown(
    changed: dict[str, Any], fault: str, tmp_path: Path
) -> None:
    path = tmp_path / "runs.jsonl"
    key = make(path, **changed)["key"]
    shown = CliRunner().invoke(app, ["show", str(path)])
    assert shown.exit_code == 0 and f"the record {key!r} in line 1 is left out: {fault}" in shown.output
    assert "cm" in shown.output and "tq" not in shown.output.replace(fault, "")
    page = CliRunner().invoke(app, ["report", str(path), "-o", str(tmp_path / "page.html"), "--no-labels"])
    assert page.exit_code == 0
    assert [record["method"] for record in load(path)] == ["cm"]


def test_numbers_that_are_none_are_not_tabulated(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    make(path)
    text = path.read_text()
    lines = [line[:12] + line[line.index('"key"') :] for line in text.splitlines()]  # as stores without checksums
    assert all(line.startswith('{"robagg":1,"key"') for line in lines)
    for number in ("NaN", "Infinity", "1e999"):
        value = json.dumps(json.loads(lines[0])["accuracy"])
        path.write_text("\n".join([lines[0].replace(f'"accuracy":{value}', f'"accuracy":{number}'), lines[1]]) + "\n")
        assert [record["method"] for record in load(path)] == ["cm"], number


def test_check_names_every_fault_and_which_plugin_is_missing(tmp_path: Path) -> None:
    path, plugin = tmp_path / "runs.jsonl", tmp_path / "mine.py"
    plugin.write_text(PLUGIN)
    load_plugin(plugin)
    sweep(grid(rules=["tq", "mymean"], settings={"rounds": 1}), path, options=Options("cpu", plugins=(str(plugin),)))
    assert (check_store(path).keys, check_store(path).faults, check_store(path).notes) == (2, [], [])
    forget(str(plugin))
    found = check_store(path)
    assert (found.keys, found.faults) == (1, [])
    assert found.notes == [
        "1 key could not be computed again, for want of the plugin MyMean as it was then: give --plugin FILE"
    ]
    record = next(iter(Store(path).read().records.values()))
    with Store(path) as store:
        store.append({**record, "key": "0" * 24})
    fault = f"line 3, the record '{'0' * 24}': its key must be {record['key']}, which its run has"
    assert check_store(path).faults == [fault]
    shown = CliRunner().invoke(app, ["check", str(path)])
    assert shown.exit_code == 1 and "3 records, 1 of them with the key of their run, 1 faults" in shown.output


def test_two_workers_give_the_table_of_one(tmp_path: Path) -> None:
    """Rows and columns in the order of the sweep, whichever run ends first."""
    runs = grid(rules=["krum", "cm"], attacks=["lf", "ga", "bf"], f=2, settings={"rounds": 1})
    slow = [dict(record) for record in (execute(run, device="cpu") for run in runs)]
    tables = []
    for order in (range(6), [5, 2, 3, 0, 4, 1]):
        path = tmp_path / f"{order[0]}.jsonl"

        def finish_in_this_order(todo: Any, options: Any, watcher: Any, order: Any = order) -> None:
            for k in order:
                watcher.finish(runs[k], dict(slow[k]))

        sweep(runs, path, executor=finish_in_this_order)
        tables.append(render(tabulate(load(path))))
    assert tables[0] == tables[1]
    head, *rows = tables[0].splitlines()[1:]
    assert head.split()[1:4] == ["lf", "ga(variance=30)", "bf(scale=1)"]
    assert [row.split()[0] for row in rows[:2]] == ["krum", "cm"]
