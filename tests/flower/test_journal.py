"""Who hears of a verdict, and when."""

from __future__ import annotations

import csv
import json
import logging
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs the extra robagg[flower]")

from flwr.app import Error, MetricRecord, RecordDict

import robagg as ra
from flower.federation import draw_model, draw_update, fill, pack, run_round
from robagg.flower import RobustStrategy
from robagg.server import read_journal, verify_journal

MODEL = draw_model()


def contents(hostile: bool = True):  # type: ignore[no-untyped-def]
    first = {name: w + 50 for name, w in MODEL.items()} if hostile else draw_update(MODEL, 0)
    return [fill(first), *(fill(draw_update(MODEL, i)) for i in range(1, 9)), Error(7, "gone")]


def test_the_file_holds_every_round_and_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "verdicts.jsonl"
    strategy = RobustStrategy(ra.TQ(f=2), log_file=path)
    for server_round in (1, 2):
        run_round(strategy, pack(MODEL), contents(), server_round)
    run_round(strategy, pack(MODEL), [RecordDict()] * 5, 3)
    first, second, third = (json.loads(line) for line in path.read_text().splitlines())
    assert (first["round"], second["round"], third["round"]) == (1, 2, 3)
    assert first["rule"] == "tq(f=2)"
    assert first["tau"] > 0
    assert first["clients"][0]["client"] == "100"
    assert first["clients"][0]["rejected"] is True
    assert "beyond tau" in first["clients"][0]["reason"]
    assert first["clients"][0]["distance"] > 100
    assert abs(sum(client["weight"] for client in first["clients"]) + first["median_weight"] - 1) < 1e-6
    assert first["clients"][-1] | {"replied": False, "rejected": False} == first["clients"][-1]
    assert third["skipped"]
    assert verify_journal(path) == []
    reports = read_journal(path).rounds
    assert [report.round for report in reports] == [1, 2, 3]
    assert "rejected" in str(reports[0])
    assert "skipped" in str(reports[2])


def test_a_torn_line_is_skipped_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("flwr").propagate = True
    path = tmp_path / "rounds.jsonl"
    strategy = RobustStrategy(ra.TQ(f=2), log_file=path)
    for server_round in (1, 2, 3):
        run_round(strategy, pack(MODEL), contents(), server_round)
    path.write_bytes(path.read_bytes()[:-40])
    assert [report.round for report in read_journal(path).rounds] == [1, 2]
    assert read_journal(path).strange == 1
    again = RobustStrategy(ra.TQ(f=2), log_file=path)
    assert f"the last line of {path} was torn after" in caplog.text
    run_round(again, pack(MODEL), contents(), 4)
    assert [report.round for report in read_journal(path).rounds] == [1, 2, 4], "the next round has a line of its own"
    path.write_text(path.read_text() + '{}\n3\n"x"\n{"nodes": 1}\n')
    assert [report.round for report in read_journal(path).rounds] == [1, 2, 4]
    assert read_journal(path).strange == 4


def test_nodes_that_cost_the_quorum_are_told_of_everywhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("flwr").propagate = True
    called: list[tuple[int, int, str]] = []
    strategy = RobustStrategy(
        "nnm >> cm",
        f=2,
        log_file=tmp_path / "v.jsonl",
        on_reject=lambda *what: called.append(what),
        warn_after=(1, 2),
    )
    nan = fill({name: np.full_like(w, np.nan) for name, w in MODEL.items()})
    rows = [fill(draw_update(MODEL, i)) for i in range(3)]
    _, metrics = run_round(strategy, pack(MODEL), [*rows, nan, nan, nan, nan])
    named = [103, 104, 105, 106]
    assert called == [(1, node, "not finite") for node in named]
    assert metrics["robagg-rejected"] == 4
    assert [client.client for client in read_journal(tmp_path / "v.jsonl").rounds[0].rejected] == [*map(str, named)]
    for node in named:
        assert f"client {node} rejected: not finite" in caplog.text
        assert f"client {node} was rejected in 1 of its last 1 rounds" in caplog.text
    assert "(row " not in caplog.text


def test_robagg_show_reads_the_file(tmp_path: Path) -> None:
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from robagg.cli.app import app

    strategy = RobustStrategy(ra.TQ(f=2), log_file=tmp_path / "rounds.jsonl")
    for server_round in (1, 2):
        run_round(strategy, pack(MODEL), contents(), server_round)
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "rounds.jsonl"), "--format", "csv"])
    assert shown.exit_code == 0
    rows = {row["client"]: row for row in csv.DictReader(shown.output[shown.output.index("client,") :].splitlines())}
    assert (rows["100"]["rejected"], rows["101"]["rejected"], rows["109"]["replied"]) == ("2", "0", "0")


def test_huge_distances_and_node_ids_are_json(tmp_path: Path) -> None:
    strategy = RobustStrategy(ra.Krum(f=2), log_file=tmp_path / "v.jsonl")
    rows = [fill({name: np.full_like(w, 3e38) for name, w in MODEL.items()}), *contents()[1:]]
    run_round(strategy, pack(MODEL), rows)
    line = json.loads((tmp_path / "v.jsonl").read_text(), parse_constant=lambda name: pytest.fail(name))
    assert line["clients"][0]["weight"] == 0


def test_a_node_rejected_again_and_again_gives_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("flwr").propagate = True
    strategy = RobustStrategy(ra.TQ(f=2), warn_after=(2, 3))
    for server_round, hostile in enumerate([True, False, False, True, True, True, True], start=1):
        run_round(strategy, pack(MODEL), contents(hostile), server_round)
        warned = [r.getMessage() for r in caplog.records if "different population" in r.getMessage()]
        assert len(warned) == (server_round >= 5)
    assert (
        "client 100 was rejected in 2 of its last 3 rounds: it is hostile, broken, or a different population"
        in warned[0]
    )


def test_neither_a_callback_nor_a_full_disk_ends_the_run(tmp_path: Path) -> None:
    def fail(round_: int, node: int, reason: str) -> None:
        raise RuntimeError("my mail server is down")

    (tmp_path / "file").write_text("")
    strategy = RobustStrategy(ra.TQ(f=2), on_reject=fail, log_file=tmp_path / "file" / "v.jsonl")
    assert run_round(strategy, pack(MODEL), contents())[0] is not None


def average_losses(records: list[RecordDict], key: str) -> MetricRecord:
    """As users write it: one NaN makes it NaN."""
    return MetricRecord({"loss": float(np.mean([record["metrics"]["loss"] for record in records]))})


@pytest.mark.parametrize("settings", [{"observe": True}, {"train_metrics_aggr_fn": average_losses}])
def test_a_loss_of_nan_does_not_end_a_run_with_a_journal(tmp_path: Path, settings: dict[str, Any]) -> None:
    strategy = RobustStrategy(ra.TQ(f=2), log_file=tmp_path / "v.jsonl", **settings)
    sent = [fill(draw_update(MODEL, i), loss=math.nan if i == 0 else 1.0) for i in range(9)]
    arrays, metrics = run_round(strategy, pack(MODEL), sent)
    assert arrays is not None and math.isnan(metrics["loss"])
    assert read_journal(tmp_path / "v.jsonl").rounds[0].metrics["loss"] is None


def test_metrics_tell_who_was_rejected() -> None:
    _, metrics = run_round(RobustStrategy(ra.TQ(f=2)), pack(MODEL), contents())
    assert metrics["robagg-rejected-nodes"] == [100]
    assert metrics["robagg-replies"] == 9
    assert metrics["robagg-skipped"] == 0
    assert metrics["robagg-tau"] > 0


def test_all_rows_outside_tau_reject_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Then the value is the median of all, said once."""
    logging.getLogger("flwr").propagate = True
    rng = np.random.default_rng(0)
    rows = [fill({"w": rng.standard_normal(1000).astype(np.float32)}) for _ in range(20)]
    _, metrics = run_round(RobustStrategy(ra.TQ(f=9)), pack({"w": np.zeros(1000, np.float32)}), rows)
    assert metrics["robagg-rejected"] == 0
    assert "No row lies within tau" in caplog.text
