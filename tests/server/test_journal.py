"""The journal: one line a round, none lost or doubled, and no change unseen."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from robagg.server import ClientVerdict, Journal, RobustServer, RoundReport, read_journal, verify_journal
from server.test_server import MODEL, draw_update, honest


def fill(path: Path, rounds: int = 4, **options: Any) -> list[bytes]:
    """A journal of so many rounds, and its lines."""
    journal = Journal(path, **options)
    for number in range(1, rounds + 1):
        client = ClientVerdict("site-1", 0.5, 1e-3, reason="é\u2028\n")
        journal.write(journal.seal(RoundReport("tq(f=1)", (client,), round=number).to_entry()))
    return path.read_bytes().splitlines(keepends=True)


def test_a_line_says_what_its_round_was(tmp_path: Path) -> None:
    path = tmp_path / "new" / "rounds.jsonl"
    server = RobustServer("nnm >> tq", f=0.2, journal=path)
    replies = honest() | {"site-4": {name: w + 100 * w.is_floating_point() for name, w in draw_update(4).items()}}
    report = server.aggregate(3, replies, model=MODEL, asked=[*replies, "site-9"]).report
    entry = json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(name))
    assert (entry["journal"], entry["seq"], entry["round"]) == (1, 0, 3)
    assert (entry["asked"], entry["answered"]) == (10, 9)
    assert (entry["rule"], entry["f_asked"], entry["f"]) == ("nnm(f=0.2) >> tq(f=0.2)", 0.2, 2)
    assert entry["time"].startswith("20") and entry["time"].endswith("+00:00")
    assert entry["run"] == server.run
    assert [client["client"] for client in entry["clients"] if client["rejected"]] == ["site-4"]
    assert entry["clients"][-1]["replied"] is False
    assert read_journal(path).rounds == (report,)


def test_a_whole_chain_has_no_faults_and_goes_on_in_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    fill(path)
    lines = fill(path)
    assert verify_journal(path, head=Journal(path).head) == []
    assert [json.loads(line)["seq"] for line in lines] == list(range(8))
    assert [report.round for report in read_journal(path).rounds] == [1, 2, 3, 4] * 2


def test_every_change_of_a_line_shows(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    lines = fill(path)
    for at in range(0, len(lines[1]) - 1, 7):
        changed = bytearray(lines[1])
        changed[at] ^= 1
        path.write_bytes(b"".join([lines[0], bytes(changed), *lines[2:]]))
        assert verify_journal(path), at


def test_a_missing_or_moved_line_shows(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    a, b, c, d = fill(path)
    for left in ([b, c, d], [a, c, d], [a, b, d], [a, c, b, d], [a, b, b, c, d]):
        path.write_bytes(b"".join(left))
        assert any("does not follow the line before it" in fault for fault in verify_journal(path))
    head = Journal(path).head
    path.write_bytes(a + b + c)
    assert verify_journal(path) == []
    assert verify_journal(path, head=head) == [
        f"the last line must have the hash {head}, got {Journal(path).head}: lines are missing at the end"
    ]


def test_a_journal_torn_at_any_byte_goes_on_with_a_whole_chain(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    lines = fill(path, 3)
    before = b"".join(lines[:2])
    for cut in range(len(lines[2]) + 1):
        path.write_bytes(before + lines[2][:cut])
        journal = Journal(path)
        assert bool(journal.notes) == (0 < cut < len(lines[2]))
        whole = 3 if cut >= len(lines[2]) - 1 else 2
        journal.write(journal.seal(RoundReport("tq", (), round=9).to_entry()))
        assert verify_journal(path) == []
        contents = read_journal(path)
        assert [report.round for report in contents.rounds] == [*range(1, whole + 1), 9]
        assert contents.strange == 0


def test_bytes_that_are_not_a_journals_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "self.toml"
    for text in ("rule = 3\n", "rule", '{"robagg":1,"key":"a"}\n'):
        path.write_text(text)
        with pytest.raises(ValueError, match="must be a journal or not there yet"):
            Journal(path)
        assert path.read_text() == text
    rounds = tmp_path / "rounds.jsonl"
    lines = fill(rounds, 2)
    rounds.write_bytes(b"".join(lines) + bytes(9))  # as a power cut may leave it
    fill(rounds, 1)
    assert [report.round for report in read_journal(rounds).rounds] == [1, 2, 1]
    assert verify_journal(rounds) == ["line 3 of rounds.jsonl is torn or was changed"]


def test_a_full_file_goes_on_in_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    size = len(fill(tmp_path / "other.jsonl", 1)[0])
    fill(path, 3, max_bytes=int(2.5 * size))
    fill(path, 2, max_bytes=int(2.5 * size))
    assert sorted(file.name for file in tmp_path.glob("rounds*")) == [
        "rounds.1.jsonl",
        "rounds.2.jsonl",
        "rounds.jsonl",
    ]
    assert [report.round for report in read_journal(path).rounds] == [1, 2, 3, 1, 2]
    assert verify_journal(path) == []
    path.rename(tmp_path / "rounds.3.jsonl")  # as if killed before the new file was begun
    fill(path, 1, max_bytes=int(2.5 * size))
    assert verify_journal(path) == []
    (tmp_path / "rounds.1.jsonl").unlink()
    assert verify_journal(path)


def test_a_file_that_was_moved_away_goes_on_in_a_new_one_with_its_chain(tmp_path: Path) -> None:
    """As logrotate does it; the first line of the new file shows that there was more."""
    path = tmp_path / "rounds.jsonl"
    journal = Journal(path)
    for number in range(1, 5):
        journal.write(journal.seal(RoundReport("tq", (), round=number).to_entry()))
        if number == 2:
            path.rename(tmp_path / "rounds.1.jsonl")
    assert [report.round for report in read_journal(path).rounds] == [1, 2, 3, 4]
    assert verify_journal(path) == []
    (tmp_path / "rounds.1.jsonl").unlink()
    assert verify_journal(path) == [
        "line 1 of rounds.jsonl does not follow the line before it: one is missing or was changed"
    ]


def test_a_second_writer_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    journal = Journal(path)
    fill(path, 1)
    with pytest.raises(OSError, match="another process writes to"):
        journal.write(journal.seal(RoundReport("tq", ()).to_entry()))


def test_the_command_says_what_is_wrong_with_a_journal(tmp_path: Path) -> None:
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from robagg.cli.app import app

    path = tmp_path / "rounds.jsonl"
    lines = fill(path)
    whole = CliRunner().invoke(app, ["verify", str(path)])
    assert whole.exit_code == 0 and "4 rounds, none changed and none missing" in whole.output
    head = whole.output.split()[-1]
    path.write_bytes(b"".join(lines[:3]))
    assert CliRunner().invoke(app, ["verify", str(path)]).exit_code == 0
    cut = CliRunner().invoke(app, ["verify", str(path), "--head", head])
    assert cut.exit_code == 1 and "lines are missing at the end" in cut.output
    path.write_bytes(b"".join([lines[0], lines[2]]))
    missing = CliRunner().invoke(app, ["verify", str(path)])
    assert missing.exit_code == 1 and "line 2 of rounds.jsonl does not follow the line before it" in missing.output
    path.write_bytes(b"")
    empty = CliRunner().invoke(app, ["verify", str(path)])
    assert isinstance(empty.exception, ValueError) and "must be a journal that holds rounds" in str(empty.exception)


def test_a_disk_that_fails_costs_lines_not_the_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    server = RobustServer("tq", f=2, journal=tmp_path / "file" / "rounds.jsonl")
    assert not server.aggregate(1, honest(), model=MODEL).skipped
    assert "could not be written" in caplog.text


def test_threads_that_share_a_server_take_turns(tmp_path: Path) -> None:
    path, replies = tmp_path / "rounds.jsonl", honest()
    server = RobustServer("cc(tau=1.0)", f=2, journal=path, state=tmp_path / "state.bin")
    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(server.aggregate, number, replies, model=MODEL) for number in range(1, 25)]
    assert all(call.result().report.f == 2 for call in done)
    assert verify_journal(path) == []
    assert sorted(report.round for report in read_journal(path).rounds) == list(range(1, 25))
    assert {record.replied for record in server.clients.values()} == {24}
