"""The study of what the paper leaves open: its runs are those of its stores, its rules are what they were."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from statistics import fmean

import pytest
import torch

import robagg.paper
from robagg import TQ, load_plugin, parse
from robagg.lab import Store
from robagg.lab.sweep_file import read_sweep
from robagg.paper.compare import Pair
from robagg.paper.numbers import read_numbers

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "studies" / "tq-paper"
PROBES = {
    "mca-sigma": 42, "table5-batch": 64, "table5-early": 102, "table5-plain": 18, "table5-short": 64, "tq-table3": 36,
    "tq-table5": 84,
}  # fmt: skip

pytestmark = pytest.mark.skipif(not STUDY.is_dir(), reason="the studies are not part of this copy")


@pytest.fixture(autouse=True)
def rules() -> None:
    load_plugin(STUDY / "tq_varied.py")


def test_every_sweep_file_is_counted() -> None:
    assert {path.stem for path in STUDY.glob("*.toml")} == {*PROBES}


@pytest.mark.parametrize("name", PROBES)
def test_a_sweep_file_lays_out_the_runs_that_its_store_has(name: str) -> None:
    sweep = read_sweep(STUDY / f"{name}.toml")
    assert ROOT / sweep.store == STUDY / "results" / f"{name}.jsonl"
    keys = {run.key for run in sweep.runs}
    assert len(keys) == len(sweep.runs) == PROBES[name] and not sweep.notes
    assert keys == Store(ROOT / sweep.store).read().records.keys()


@pytest.mark.parametrize(
    ("begin", "factor"), [("median", 1.0), ("median", 1.4826), ("mean", 1.0), ("mean", 1.4826), ("last", 1.0)]
)
def test_tq_from_other_starts_follows_its_definition(begin: str, factor: float) -> None:
    """Rows whose median is far from their mean, so that the start decides who is inside."""
    x = torch.randn(11, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64).exp()
    x[8:] *= -2.0
    n, f = 11, 3
    median, last = x.median(0).values, x[0] + 0.1
    spread = (factor * (x - median).abs().median(0).values).square().sum()
    v = {"median": median, "mean": x.mean(0), "last": last}[begin]
    for _ in range(10):
        tau2 = (n - f) / f * ((v - median).square().sum() + spread)
        v = v + (x - v)[(x - v).square().sum(1) <= tau2].sum(0) / n
    rule = parse("tqlast" if begin == "last" else f"tqvaried(from_mean={begin == 'mean'}, factor={factor})", f=3)
    torch.testing.assert_close(rule.step(x, last)[0].value, v)
    plain = (TQ(f=3)(x) - v).norm() < 1e-9
    assert plain == ((begin, factor) == ("median", 1.0))


def test_a_factor_on_the_mads_must_be_positive() -> None:
    with pytest.raises(ValueError, match="factor"):
        parse("tqvaried(factor=0.0)", f=3)


MOVED = {
    "tqtrue(f=3, iterations=3)": [1.6474609375, 3.568359375, 0.62109375],
    "tqtrue(f=1, iterations=3)": [3.5, 2.0, 1.25],
    "tqvaried(from_mean=True, iterations=3)": [1.76171875, 3.533203125, 0.5771484375],
    "tqvaried(factor=4.0, iterations=3)": [3.5, 2.0, 1.25],
    "tqvaried(from_mean=True, factor=0.5, iterations=3)": [2.6181640625, 2.755859375, 0.80908203125],
    "tqlast(iterations=3)": [2.03125, 3.421875, 0.5390625],
}
"""What the classes gave before their files moved and keys of their runs were rewritten (at commit 5ad16fb)."""


@pytest.mark.parametrize("text", MOVED)
def test_rules_whose_keys_were_rewritten_are_what_they_were_to_the_last_bit(text: str) -> None:
    """Eight rows of whole numbers: every step is a multiple of 1/512, so that no machine rounds it."""
    load_plugin(Path(robagg.paper.__file__).with_name("tq_true.py"))
    rows = [[0, 4, 1], [2, 3, -1], [1, 5, 0], [3, 4, 2], [2, 2, 1], [7, 3, -2], [6, -2, 5], [7, -3, 4]]
    x, last = torch.tensor(rows, dtype=torch.float64), torch.tensor([5, 1, 2], dtype=torch.float64)
    assert parse(text, f=2).step(x, last)[0].value.tolist() == MOVED[text]


def read_tables(text: str, columns: int) -> list[list[str]]:
    """The cells of all rows of Markdown tables that have so many columns."""
    rows = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return [row for row in rows if len(row) == columns and set(row[1]) - {"-"}]


def test_the_essays_differences_are_those_of_the_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(STUDY)
    compare = importlib.import_module("compare")
    stores = [ROOT / "results" / "paper" / "table5.jsonl", *(STUDY / "results" / f"{name}.jsonl" for name in PROBES)]
    known = [compare.write_row(pairs)[:-1] for store in stores for pairs in compare.compare(store).values()]
    essay = (STUDY / "README.md").read_text(encoding="utf-8")
    stated = [row[1:] for row in read_tables(essay, 8) if "." in row[-1]]
    assert len(stated) == 8 + 2 + 7
    assert [row for row in stated if row not in known] == []
    early = compare.compare(STUDY / "results" / "table5-early.jsonl").values()
    near = [pair.near for pairs in early for pair in pairs.values()]
    assert f"{sum(near)} of {len(near)} cells are near" in essay


def test_the_essays_ways_of_evaluating_are_those_of_their_runs() -> None:
    lines = [json.loads(line) for line in (STUDY / "results" / "evaluation.jsonl").read_text().splitlines()]
    names = {"running statistics": "mean", "running statistics, test images cropped as in training": "cropped"}
    rows = read_tables((STUDY / "README.md").read_text(encoding="utf-8"), 9)
    stated = {row[0]: row[1:] for row in rows if row[0] != "evaluated by"}
    assert len(stated) == 7
    for name, row in stated.items():
        key = names.get(name, name.removeprefix("test ").replace(",", ""))
        pairs = []
        for attack in ("GA", "ALIE", "BF", "IPM", "LF", "MIMIC"):
            found = [line[key] for line in lines if line["cell"] == f"tq {attack.lower()}"]
            assert len(found) == 3
            pairs.append(Pair(fmean(found), *read_numbers("table5")["f=4", "TQ", attack]))
        off = fmean(abs(pair.difference) for pair in pairs)
        found = [*(p.difference for p in pairs), sum(p.near for p in pairs), off]
        assert [*map(float, row)] == pytest.approx(found, abs=0.0501), name
