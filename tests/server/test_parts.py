"""Clients that send a part of the model, and runs in which nothing comes of the rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from robagg.server import Failure, RobustServer, SkippedRoundsError

MODEL = {
    "body.weight": torch.zeros(4, 3),
    "head.weight": torch.zeros(2, 4),
    "bn.running_mean": torch.zeros(4),
    "bn.num_batches_tracked": torch.tensor(0),
}
HEAD, NO_BATCHNORM = ["head.weight"], ["body.weight", "head.weight"]


def send(names: Any, n: int = 7) -> dict[str, Any]:
    return {f"site-{i}": {name: MODEL[name] + 1 + i % 3 for name in names} for i in range(n)}


@pytest.mark.parametrize("names", [HEAD, NO_BATCHNORM])
@pytest.mark.parametrize("partial", [True, None])
def test_the_part_that_all_send_is_aggregated_and_the_rest_stays(
    names: list[str], partial: bool | None, caplog: pytest.LogCaptureFixture
) -> None:
    server = RobustServer("tq", f=2, partial=partial)
    for number in (1, 2):
        result = server.aggregate(number, send(names), model=MODEL)
        assert not result.skipped and not result.report.rejected
        assert list(result.model) == list(MODEL)
        for name, own in MODEL.items():
            assert torch.equal(result.model[name], own) == (name not in names)
    assert caplog.text.count("what they hold is aggregated, the rest stays") == (partial is None)


def test_one_that_sends_more_or_less_than_the_others_is_no_obstacle() -> None:
    replies = send(HEAD) | {"site-0": dict(MODEL), "site-1": {"body.weight": MODEL["body.weight"]}}
    report = RobustServer("cm", f=2).aggregate(1, replies, model=MODEL).report
    assert [(client.client, client.reason) for client in report.rejected] == [
        ("site-1", "lacks 'head.weight': 1 arrays came where 1 are expected")
    ]


def test_all_lacking_the_same_arrays_ask_whether_a_part_is_meant() -> None:
    """Where the first round has settled that the model is sent whole, or a part is not allowed."""
    server = RobustServer("tq", f=2)
    assert not server.aggregate(1, send(MODEL), model=MODEL).skipped
    never = RobustServer("tq", f=2, partial=False)
    for which in (server, never):
        result = which.aggregate(2, send(HEAD), model=MODEL)
        assert result.model is MODEL
        assert "do you send a part of the model? partial=True aggregates it" in result.skipped
        assert result.report.rejected[0].reason == "lacks 'body.weight' and 2 more: 1 arrays came where 4 are expected"
    assert not RobustServer("tq", f=2, partial=True).aggregate(2, send(HEAD), model=MODEL).skipped


def test_a_minority_settles_nothing() -> None:
    server = RobustServer("tq", f=2)
    replies = send(MODEL) | send(HEAD, n=3)
    report = server.aggregate(1, replies, model=MODEL).report
    assert sorted(client.client for client in report.rejected) == ["site-0", "site-1", "site-2"]
    counters = RobustServer("tq", f=2, partial=True).aggregate(1, send(["bn.num_batches_tracked"]), model=MODEL)
    assert counters.skipped, "of counters alone there are no distances"


@pytest.mark.parametrize("early", [HEAD, list(MODEL)])
def test_the_few_of_a_round_without_a_quorum_do_not_decide_what_the_run_aggregates(early: list[str]) -> None:
    """Else two clients that answer first would freeze all but the head, or end a run in which the head is sent."""
    server = RobustServer("tq", f=2)
    gone = {f"site-{i}": Failure("late") for i in range(2, 7)}
    assert server.aggregate(1, send(early, n=2) | gone, model=MODEL).skipped
    others = list(MODEL) if early is HEAD else HEAD
    result = server.aggregate(2, send(others), model=MODEL)
    assert not result.skipped
    for name, own in MODEL.items():
        assert torch.equal(result.model[name], own) == (name not in others)


def test_another_part_begins_with_what_a_rule_remembers_of_none() -> None:
    server = RobustServer("cc(tau=1.0)", f=2, partial=True)
    for number, names in enumerate([HEAD, NO_BATCHNORM, NO_BATCHNORM, HEAD], start=1):
        assert not server.aggregate(number, send(names), model=MODEL).skipped


def test_extra_arrays_are_named_with_what_was_expected() -> None:
    replies = {name: reply | {"more": torch.zeros(1)} for name, reply in send(MODEL).items()}
    report = RobustServer("tq", f=2).aggregate(1, replies, model=MODEL).report
    assert report.rejected[0].reason == "has 'more' too many: 5 arrays came where 4 are expected"
    assert len(report.rejected) == 7 and report.skipped


def test_skipped_rounds_in_a_row_end_the_run_with_an_error() -> None:
    server, seen = RobustServer("tq", f=2, max_skipped=3), []
    gone = {f"site-{i}": Failure("gone") for i in range(5)}
    for number, replies in enumerate([gone, gone, send(MODEL), gone, gone], start=1):
        seen.append(bool(server.aggregate(number, replies, model=MODEL).skipped))
    assert seen == [True, True, False, True, True]
    with pytest.raises(SkippedRoundsError, match="the last 3 rounds were skipped"):
        server.aggregate(6, gone, model=MODEL)
    never = RobustServer("tq", f=2, max_skipped=None)
    assert all(never.aggregate(number, gone, model=MODEL).skipped for number in range(9))
    with pytest.raises(ValueError, match="max_skipped must be a whole number, at least 1, got 0"):
        RobustServer("tq", max_skipped=0)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("bn.running_mean", torch.full((4,), 3e38), "'bn.running_mean' lies 3e+38 from the median of all replies"),
        ("bn.num_batches_tracked", torch.tensor(2**63 - 1), "'bn.num_batches_tracked' lies 9.22e+18 from the median"),
        ("bn.running_var", torch.tensor([1.0, 1.0, -1.0, 1.0]), "'bn.running_var' is a variance and below 0 at -1"),
    ],
)
def test_a_broken_statistic_or_counter_is_named(
    name: str, value: torch.Tensor, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = MODEL | {"bn.running_var": torch.ones(4)}
    replies: dict[str, Any] = {f"site-{i}": {k: w + i % 3 for k, w in model.items()} for i in range(7)}
    replies["site-6"] = replies["site-6"] | {name: value}
    result = RobustServer("tq", f=2).aggregate(1, replies, model=model)
    odd = {client.client: client.aside for client in result.report.clients if client.aside}
    assert list(odd) == ["site-6"] and said in odd["site-6"]
    assert said in caplog.text
    assert not result.report.rejected, "the median makes it harmless, and what it trained may be sound"
    assert float(result.model[name].max()) <= 3


def test_statistics_that_differ_as_honest_ones_do_are_not_named() -> None:
    rng = np.random.default_rng(0)
    model = {"w": np.zeros(3), "bn.running_mean": np.zeros(50), "n": np.array(0)}
    replies = {
        f"site-{i}": {"w": rng.normal(size=3), "bn.running_mean": 10 * rng.normal(size=50), "n": np.array(i * 100)}
        for i in range(9)
    }
    report = RobustServer("cm", aside="bn.*").aggregate(1, replies, model=model).report
    assert not any(client.aside for client in report.clients)
