"""What clients cannot bring about: a round skipped by one of few, or a quarantine that disarms the rule."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from robagg.server import ClientRecord, Failure, RobustServer

MODEL = {"w": torch.zeros(5)}
BROKEN, FAR = {"w": torch.full((5,), torch.nan)}, {"w": torch.full((5,), 1e6)}


def send(n: int) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(n)
    return {f"site-{i}": {"w": 1 + 0.1 * torch.randn(5, generator=generator)} for i in range(n)}


def isolate(server: RobustServer, count: int) -> None:
    """Put the first clients in quarantine."""
    for name in list(send(count)):
        server.memory.clients[name] = ClientRecord(name, reputation=0.4, in_quarantine=True)


@pytest.mark.parametrize("f", [1, 0.2, None])
def test_one_broken_client_of_three_does_not_stop_the_other_two(f: Any) -> None:
    server = RobustServer("tq", f=f)
    for number in range(1, 5):
        result = server.aggregate(number, send(3) | {"site-0": BROKEN}, model=MODEL)
        assert not result.skipped and float((result.model["w"] - 1).abs().max()) < 0.5
        assert result.report.unprotected, "a second one would not be borne, which the log says"


def test_two_replies_of_which_one_is_broken_are_no_value() -> None:
    assert RobustServer("tq", f=0.2).aggregate(1, send(2) | {"site-0": BROKEN}, model=MODEL).skipped


def test_a_quarantine_does_not_lower_the_f_in_force() -> None:
    """Of nine, three honest ones are left out; of the other six four are Byzantine, which f=4 bears and f=2 not."""
    server = RobustServer("tq", f=4, reputation="quarantine")
    isolate(server, 3)
    replies = send(9) | {f"site-{i}": FAR for i in range(5, 9)}
    result = server.aggregate(1, replies, model=MODEL)
    assert result.report.f == 4 and "the quarantine of 3 is lifted" in result.report.note
    assert float((result.model["w"] - 1).abs().max()) < 0.5
    assert sorted(client.client for client in result.report.rejected) == [f"site-{i}" for i in range(5, 9)]


def test_a_quarantine_does_not_end_the_run() -> None:
    server = RobustServer("tq", f=3, reputation="quarantine")
    isolate(server, 4)
    assert not any(server.aggregate(number, send(10), model=MODEL).skipped for number in range(1, 5))


def test_a_quarantine_that_leaves_enough_stays() -> None:
    server = RobustServer("tq", f=3, reputation="quarantine")
    isolate(server, 3)
    report = server.aggregate(1, send(10), model=MODEL).report
    left_out = [client.client for client in report.clients if client.reason.startswith("in quarantine")]
    assert (report.f, report.note, left_out) == (3, "", ["site-0", "site-1", "site-2"])


def test_who_fails_in_quarantine_is_no_broken_reply_and_does_not_recover() -> None:
    server = RobustServer("tq", f=2, reputation="quarantine")
    isolate(server, 1)
    report = server.aggregate(1, send(9) | {"site-0": Failure("gone")}, model=MODEL).report
    (lost,) = [client for client in report.clients if not client.replied]
    assert (lost.client, lost.reason, lost.reputation, report.answered) == ("site-0", "gone", 0.4, 8)
