"""A server that is killed goes on where it was: rounds, the journal, CC's last value, reputations, warnings."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import robagg as ra
from robagg.server import Failure, Reputation, RobustServer, read_journal, verify_journal
from robagg.server.files import write_state

NAMES = [f"site-{i}" for i in range(7)]
PROGRAM = """
import os, sys
import robagg.server.files as files, robagg.server.journal as journal
from server.test_resuming import go_on
kill_at, where = int(sys.argv[2]), sys.argv[3]
owner, name = {"state": (files, "write_state"), "line": (journal.Journal, "write")}[where]
real, calls = getattr(owner, name), 0
def killed(*arguments):
    global calls
    calls += 1
    if calls == kill_at:
        os.kill(os.getpid(), 9)
    real(*arguments)
setattr(owner, name, killed)
go_on(sys.argv[1])
"""


def draw_replies(model: dict[str, Any], round_number: int) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(round_number)
    replies: dict[str, Any] = {
        name: {"w": model["w"] + 0.1 * torch.randn(20, generator=generator) + 0.1, "n": model["n"] + 1}
        for name in NAMES
    }
    return replies | {"site-6": {"w": model["w"] + torch.nan, "n": np.array(1)}, "site-5": Failure("gone")}


def go_on(folder: str, rounds: int = 6) -> RobustServer:
    """Rounds up to the sixth, with a rule that remembers, from wherever the state in the folder is."""
    path = Path(folder)
    server = RobustServer(
        "cc(tau=0.3)", f=2, journal=path / "rounds.jsonl", state=path / "server.pt", warn_after=(4, 5)
    )
    model = server.model or {"w": torch.zeros(20), "n": np.array(0)}
    for number in range(server.round + 1, rounds + 1):
        model = server.aggregate(number, draw_replies(model, number), model=model).model
    return server


def test_a_server_killed_at_any_write_loses_and_doubles_no_round(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    whole = go_on(str(tmp_path / "whole"))
    source = str(Path(ra.__file__).parents[1])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([source, str(Path(__file__).parents[1])])}
    for where in ("state", "line"):
        folder = tmp_path / where
        folder.mkdir()
        for kill_at in (3, 2):
            command = [sys.executable, "-c", PROGRAM, str(folder), str(kill_at), where]
            assert subprocess.run(command, env=environment).returncode == -signal.SIGKILL
        server = go_on(str(folder))
        assert [report.round for report in read_journal(folder / "rounds.jsonl").rounds] == [1, 2, 3, 4, 5, 6]
        assert verify_journal(folder / "rounds.jsonl") == []
        assert torch.equal(server.model["w"], whole.model["w"])
        assert server.model["n"] == whole.model["n"] and isinstance(server.model["n"], np.ndarray)
        assert server.clients == whole.clients
        assert len({report.run for report in read_journal(folder / "rounds.jsonl").rounds}) == 1


def test_a_file_holds_all_of_one_state_or_all_of_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "server.pt"
    write_state(path, {"round": 1})

    def die(state: Any, file: Any) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", die)
    with pytest.raises(KeyboardInterrupt):
        write_state(path, {"round": 2})
    assert torch.load(path, weights_only=True) == {"round": 1}


def test_a_state_dict_carries_a_server_over(tmp_path: Path) -> None:
    first = RobustServer("cc(tau=0.3)", f=2, reputation="quarantine")
    model: Any = {"w": torch.zeros(20), "n": np.array(0)}
    for number in (1, 2):
        model = first.aggregate(number, draw_replies(model, number), model=model).model
    second = RobustServer("cc(tau=0.3)", f=2, reputation="quarantine")
    second.load_state_dict(first.state_dict())
    assert (second.round, second.run) == (2, first.run)
    replies = draw_replies(model, 3)
    assert torch.equal(
        first.aggregate(3, replies, model=model).model["w"], second.aggregate(3, replies, model=model).model["w"]
    )
    assert first.clients == second.clients
    other = RobustServer("tq", f=2)
    other.load_state_dict(first.state_dict())  # another rule has no use for what CC remembers
    assert not other.aggregate(4, replies, model=model).skipped


def test_a_file_that_is_no_state_is_told_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "server.pt"
    whole = RobustServer("tq", f=2).state_dict()
    torch.save(whole | {"line": ""}, path)
    RobustServer("tq", f=2, state=path)
    sound = path.read_bytes()
    for contents in (b"", b"hello", sound[: len(sound) // 2], pickle.dumps(print, 2), pickle.dumps([1], 2)):
        path.write_bytes(contents)
        with pytest.raises(ValueError, match=r"server\.pt must be a state that a RobustServer saved, or not there yet"):
            RobustServer("tq", f=2, state=path)
        assert path.read_bytes() == contents
    for state in ({}, None, [1], {"run": "x"}):
        with pytest.raises(ValueError, match=r"the state must be what RobustServer.state_dict\(\) gave"):
            RobustServer("tq", f=2).load_state_dict(state)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the state must be of version 1, got 2"):
        RobustServer("tq", f=2).load_state_dict(whole | {"version": 2})


def test_a_journal_that_lacks_rounds_of_the_state_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    go_on(str(tmp_path), rounds=4)
    lines = (tmp_path / "rounds.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "rounds.jsonl").write_bytes(b"".join(lines[:2]))
    go_on(str(tmp_path), rounds=5)
    assert "does not end with round 4" in caplog.text


def test_names_and_numbers_as_numpy_samples_them_can_be_saved(tmp_path: Path) -> None:
    for names in (np.array(NAMES), np.arange(7)):
        state = tmp_path / f"{names.dtype.kind}.pt"
        server = RobustServer("tq", f=2, state=state, journal=state.with_suffix(".jsonl"))
        replies: dict[Any, Any] = {name: {"w": torch.zeros(3)} for name in np.random.permutation(names)}
        server.aggregate(np.int64(1), replies, model={"w": torch.zeros(3)})  # type: ignore[arg-type]
        again = RobustServer("tq", f=2, state=state)
        assert again.round == 1 and again.clients == server.clients


def test_a_full_disk_costs_the_state_not_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(state: Any, file: Any) -> None:
        raise RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 704 vs 598")

    monkeypatch.setattr(torch, "save", fail)
    go_on(str(tmp_path), rounds=2)
    assert caplog.text.count("could not be saved: [enforce fail") == 2
    assert [report.round for report in read_journal(tmp_path / "rounds.jsonl").rounds] == [1, 2]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_what_a_rule_remembers_follows_the_model_to_its_device(tmp_path: Path) -> None:
    go_on(str(tmp_path), rounds=2)
    server = RobustServer("cc(tau=0.3)", f=2, state=tmp_path / "server.pt")
    model = {"w": server.model["w"].cuda(), "n": server.model["n"]}
    assert not server.aggregate(3, draw_replies({**model, "w": model["w"].cpu()}, 3), model=model).skipped


def test_warnings_are_not_given_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for rounds in (4, 6):
        go_on(str(tmp_path), rounds=rounds)
    assert caplog.text.count("client site-6 was rejected in 4 of its last 4 rounds") == 1


def test_a_reputation_falls_with_rejections_and_recovers() -> None:
    server = RobustServer("tq", f=2, reputation=Reputation(decay=0.5))
    model = {"w": torch.zeros(20)}
    seen = []
    for number in range(1, 6):
        far = 1e6 if number < 3 else 0.1
        replies = {name: {"w": torch.full((20,), 0.1 + 0.01 * i)} for i, name in enumerate(NAMES)}
        replies["site-3"] = {"w": torch.full((20,), far)}
        report = server.aggregate(number, replies, model=model).report
        seen.append(next(client.reputation for client in report.clients if client.client == "site-3"))
    assert seen == [0.5, 0.25, 0.625, 0.8125, 0.90625]
    record = server.clients["site-3"]
    assert (record.asked, record.replied, record.rejected, record.believed) == (5, 5, 2, 3)
    assert "beyond tau" in record.last_reason and record.last_distance is not None


def test_a_quarantine_leaves_a_client_out_and_ends() -> None:
    server = RobustServer("mean", f=2, reputation=Reputation("quarantine", decay=0.5, below=0.3, release=0.6))
    model = {"w": torch.zeros(3)}
    out = []
    for number in range(1, 7):
        replies: dict[str, Any] = {name: {"w": torch.ones(3)} for name in NAMES}
        replies["site-6"] = {"w": torch.full((3,), torch.nan if number < 3 else 50.0)}
        result = server.aggregate(number, replies, model=model)
        last = result.report.clients[-1]
        out.append((last.rejected, last.quarantined))
        if "in quarantine" in last.reason:
            assert torch.equal(result.model["w"], torch.ones(3))
    # Broken twice: 0.5, 0.25. Out for one round, in which it comes back to 0.625. Then it takes part again.
    assert out == [(True, False), (True, True), (True, False), (False, False), (False, False), (False, False)]
    assert (server.clients["site-6"].rejected, server.clients["site-6"].quarantined) == (2, 1)


@dataclass(frozen=True)
class Alike(ra.TQ):
    """TQ for clients that all count alike."""

    takes_weights: ClassVar[bool] = False


def test_a_reputation_weighs() -> None:
    server = RobustServer("mean(max_weight=1.0)", reputation=Reputation("weight", decay=0.5))
    model = {"w": torch.zeros(3)}
    replies: dict[str, Any] = {name: {"w": torch.zeros(3)} for name in NAMES}
    server.aggregate(1, replies | {"site-6": {"w": torch.full((3,), torch.nan)}}, model=model)
    result = server.aggregate(2, replies | {"site-6": {"w": torch.ones(3)}}, model=model)
    weights = {client.client: client.weight for client in result.report.clients}
    assert weights["site-6"] == pytest.approx(0.5 / 6.5) and weights["site-0"] == pytest.approx(1 / 6.5)
    assert torch.allclose(result.model["w"], torch.full((3,), 0.5 / 6.5))
    with pytest.raises(ValueError, match="must count clients by their votes to take weights"):
        RobustServer(Alike(), reputation="weight")
    with pytest.raises(ValueError, match="effect must be one of report, weight, quarantine, got 'ban'"):
        RobustServer("tq", reputation="ban")
