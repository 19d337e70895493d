"""Replays: from the journal alone, what a rule would have made of the updates themselves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from robagg import parse
from robagg.cli.app import app
from robagg.server import RobustServer, RoundReport, read_journal, replay_round

RULES = (
    "tq",
    "tq(iterations=1)",
    "huber",
    "mca",
    "krum",
    "multikrum",
    "rfa",
    "caf",
    "mean",
    "nnm >> krum",
    "clipping >> krum",
    "nnm >> nnm >> rfa",
)
N = 10


def run_rounds(rule: str, folder: Path) -> list[tuple[RoundReport, torch.Tensor]]:
    """Three rounds of a server, each with the updates that came; round 2 has a NaN, round 3 a row at 1e25."""
    torch.manual_seed(0)
    path = folder / "rounds.jsonl"
    server = RobustServer(rule, f=2, journal=path)
    model, updates = {"w": torch.randn(300)}, []
    for number in (1, 2, 3):
        change = 0.1 + torch.randn(N, 300) * torch.linspace(0.5, 1.5, N)[:, None]
        change[8] += 3
        if number == 2:
            change[9, 0] = torch.nan
        if number == 3:
            change[9] *= 1e25
        rows = model["w"] + change
        updates.append(rows - model["w"])
        replies: dict[str, Any] = {f"s{i}": {"w": row} for i, row in enumerate(rows)}
        model = server.aggregate(number, replies, model=model, asked=[*replies, "late"]).model
    return list(zip(read_journal(path).rounds, updates, strict=True))


@pytest.mark.parametrize("ran", ["tq", "rfa"])
@pytest.mark.parametrize("text", RULES)
def test_a_replay_gives_the_verdict_that_the_rule_gives_on_the_updates(text: str, ran: str, tmp_path: Path) -> None:
    rule = parse(text, f=2)
    for report, updates in run_rounds(ran, tmp_path):
        again = replay_round(report, rule)
        verdict = rule.explain(updates)
        assert again.clients[-1].reason == "no reply"
        clients = again.clients[:-1]
        assert [client.client for client in clients] == [f"s{i}" for i in range(N)]
        assert [client.rejected for client in clients] == verdict.rejected.tolist()
        weights = torch.tensor([client.weight for client in clients])
        torch.testing.assert_close(weights, verdict.weights.float(), atol=1e-4, rtol=1e-3)
        if rule.core.name() != "tq":  # TQ's distances are those to the centre of its last step
            known = [torch.nan if client.distance is None else client.distance for client in clients]
            assert torch.allclose(torch.tensor(known), verdict.distances.float(), rtol=2e-3, equal_nan=True)
        assert (again.f, again.round, again.skipped) == (verdict.f, report.round, "")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("cm", "cm needs the updates"),
        ("nnm >> tq", "needs the median of the rows behind nnm"),
        ("bucketing >> krum", "bucketing does not decide by distances"),
        ("cc", "starts from its last value"),
    ],
)
def test_a_rule_that_needs_more_than_distances_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        replay_round(RoundReport("tq", ()), parse(text, f=2))


def test_a_round_without_a_gram_matrix_or_a_quorum_is_reported_as_skipped(tmp_path: Path) -> None:
    server = RobustServer("tq", f=0, journal=tmp_path / "rounds.jsonl", gram=False)
    server.aggregate(1, {"a": {"w": torch.zeros(2)}}, model={"w": torch.zeros(2)})
    (report,) = read_journal(tmp_path / "rounds.jsonl").rounds
    assert "no Gram matrix" in replay_round(report, parse("krum", f=0)).skipped
    reports = [report for report, _ in run_rounds("tq", tmp_path / "whole")]
    assert "n=10" in replay_round(reports[1], parse("krum", f=5)).skipped
    lost = replay_round(reports[1], parse("krum", f=4))
    assert (lost.f, lost.skipped, lost.rejected[0].reason) == (4, "", "not finite")


@pytest.mark.parametrize(
    "change",
    [
        {"cosines": "!"},
        {"cosines": ""},
        {"cosines": "A" * 1000},
        {"lengths": (1.0, 2.0)},
        {"lengths": (None,) * 10},
        {"lengths": (-1.0,) * 10},
        {"lengths": (float("inf"),) * 10},
        {"spread": float("nan")},
        {"clients": ("nobody",) * 9},
        {"clients": ()},
    ],
)
def test_a_gram_matrix_that_was_changed_is_no_verdict(change: dict[str, Any], tmp_path: Path) -> None:
    report = next(report for report, _ in run_rounds("tq", tmp_path) if report.gram and len(report.gram.clients) == 9)
    changed = replace(report, gram=replace(report.gram, **change))
    assert "was changed" in replay_round(changed, parse("tq", f=2)).skipped


def test_the_command_compares_what_ran_with_what_would_have(tmp_path: Path) -> None:
    run_rounds("tq", tmp_path)
    words = ["replay", str(tmp_path / "rounds.jsonl"), "--rule", "krum", "--f", "2"]
    shown = CliRunner().invoke(app, words, catch_exceptions=False).stdout
    assert "as it ran: 3 rounds of tq(f=2); replayed: 3 rounds of krum(f=2)" in shown
    assert "rounds in which they rejected different clients: 1, 2, 3" in shown
    one = CliRunner().invoke(app, [*words, "--round", "2"], catch_exceptions=False).stdout
    assert one.count("not finite") == 2
    with pytest.raises(ValueError, match="--round must be a round"):
        CliRunner().invoke(app, [*words, "--round", "9"], catch_exceptions=False)
