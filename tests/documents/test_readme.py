"""The README prints what its code prints, and its figures are those of the committed files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from robagg.lab import load
from robagg.report.tables import sum_up

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = ROOT / "results"
ROWS = {
    "mean": "mean",
    "CM": "cm",
    "Krum": "krum",
    "Huber": "huber",
    "TQ": "tq",
    "NNM >> CM": "nnm >> cm",
    "NNM >> TQ": "nnm >> tq",
    "NNM >> TQ, no floor": "nnm >> tq(floor=False)",
    "CAF": "caf",
    "SpectralFilter": "spectralfilter",
    "ScaledFilter": "scaledfilter",
}
USUAL = {"ga", "alie", "bf", "ipm", "lf", "mimic"}
CHOSEN = {"alie", "alie(z=0.75)", "alie(z=1.0)", "alie(z=1.5)", "ipm", "ipm(c0=1.0)"}


def read_table(head: str) -> dict[str, list[str]]:
    """The rows of the table whose header begins like that, by their first cell."""
    lines = README.split(f"| {head} |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in rows}


def test_the_first_example_prints_what_stands_below_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL).groups()  # type: ignore[union-attr]
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out == said


@pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="the benchmarks are not part of this copy")
def test_the_times_are_those_of_the_benchmarks() -> None:
    cpu, flower = (
        json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("cpu-n20", "cpu-flower-1.2M")
    )
    rules, peers, times = cpu["rules"], cpu["peers"]["ByzFL"], flower["strategies"]
    assert f"`x.mean(0)` takes {cpu['mean_ms']:.1f} ms, TQ {rules['tq']['ms']:.1f} ms" in README
    names = {
        "coordinate-wise median (`CM`)": ("cm", "FedMedian", "CM"),
        "trimmed mean (`TM`)": ("tm", "FedTrimmedAvg", "TM"),
        "Krum": ("krum", "Krum", "Krum"),
        "Multi-Krum": ("multikrum", "MultiKrum", "MultiKrum"),
    }
    expected = {
        row: [
            f"{rules[rule]['ms']:.1f} ms",
            f"{peers[rule]['gain']:.0f}",
            f"{times[theirs]['ms'] / times[f'RobustStrategy({ours})']['ms']:.0f}",
        ]
        for row, (rule, theirs, ours) in names.items()
    }
    assert read_table("rule | robagg") == expected


def find_worst(runs: Iterable[Mapping[str, Any]], rule: str, attacks: set[str]) -> str:
    """The least mean accuracy over the attacks, where every one of them was run."""
    cells: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        if run["method"] == rule and run["attack"] in attacks:
            cells.setdefault(run["attack"], []).append(run)
    return f"{min(sum_up(cell).mean for cell in cells.values()):.1f}" if cells and cells.keys() == attacks else "-"


def test_the_worst_cases_are_those_of_the_records() -> None:
    stores = [RESULTS / "strengths.jsonl", RESULTS / "paper" / "fig3.jsonl", RESULTS / "paper" / "table3.jsonl"]
    cell = {"task": "mnist", "n": 20, "f": 6, "rho": 0.5}
    mnist = {
        record["key"]: record
        for store in stores
        for record in load(store)
        if all(record[name] == value for name, value in cell.items()) and "rounds" not in record
    }.values()
    digits = load(RESULTS / "strengths-digits.jsonl")
    strengths = {record["attack"] for record in digits}
    calm = [r for r in load(RESULTS / "profile" / "digits.jsonl") if r.get("momentum") == 0.9]
    attacks = {record["attack"] for record in calm if record["method"] == "scaledfilter"} - {"none"}
    assert len(attacks) == 15
    expected = {
        row: [
            find_worst(mnist, rule, USUAL),
            find_worst(mnist, rule, CHOSEN),
            find_worst(digits, rule, strengths),
            find_worst(calm, rule, attacks),
        ]
        for row, rule in ROWS.items()
    }
    assert read_table("rule | usual strengths, MNIST") == expected
    chosen = {rule: float(cells[3]) for rule, cells in expected.items() if cells[3] != "-"}
    assert max(chosen, key=chosen.__getitem__) == "SpectralFilter"
