"""The server behind `robagg watch`: it gives each round once, to this machine alone, and nothing else."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from report.journals import NAMES, fill_hostile, fill_journal
from report.records import HOSTILE, fill_small
from robagg.cli.app import app
from robagg.report.watch import WatchServer


class Caller:
    """Asks a running server."""

    def __init__(self, server: WatchServer) -> None:
        self.server = server

    def ask(self, path: str = "/", method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=30)
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, text

    def list_rounds(self, **query: Any) -> dict[str, Any]:
        status, _, text = self.ask("/rounds?" + "&".join(f"{name}={value}" for name, value in query.items()))
        assert status == 200
        rounds: dict[str, Any] = json.loads(text)
        return rounds


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rounds.jsonl"


@pytest.fixture
def caller(path: Path) -> Iterator[Caller]:
    """Of a journal that is not there yet."""
    with WatchServer(path, port=0) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield Caller(server)
        server.shutdown()


def test_a_journal_that_is_not_there_yet_has_no_rounds_and_comes(caller: Caller, path: Path) -> None:
    assert caller.list_rounds()["rounds"] == []
    fill_journal(path, 3)
    assert [one["round"] for one in caller.list_rounds()["rounds"]] == [1, 2, 3]


def test_a_page_gets_what_it_lacks_and_no_more(caller: Caller, path: Path) -> None:
    fill_journal(path, 2)
    one = caller.list_rounds()
    fill_journal(path, 1, start=3)
    two = caller.list_rounds(id=one["id"], first=2, names=len(one["names"]), texts=len(one["texts"]))
    assert [entry["round"] for entry in two["rounds"]] == [3] and two["total"] == 3
    assert two["names"] == [] and len(two["texts"]) == 1  # the metric
    again = caller.list_rounds()
    assert again["names"] == one["names"] and again["texts"] == one["texts"] + two["texts"]


def test_thousands_of_rounds_come_a_hundred_at_a_time(caller: Caller, path: Path) -> None:
    fill_journal(path, 230, 3)
    first, seen = caller.list_rounds(), []
    while len(seen) < first["total"]:
        seen += [one["round"] for one in caller.list_rounds(id=first["id"], first=len(seen))["rounds"]]
    assert len(first["rounds"]) == 100 and seen == list(range(1, 231))


def test_another_journal_in_its_place_is_given_from_the_start(caller: Caller, path: Path) -> None:
    fill_journal(path, 5)
    one = caller.list_rounds()
    path.unlink()
    fill_journal(path, 3, start=11)
    two = caller.list_rounds(id=one["id"], first=5, names=12, texts=9)
    assert two["id"] != one["id"] and [entry["round"] for entry in two["rounds"]] == [11, 12, 13]
    assert len(two["names"]) == 12


def test_a_round_says_all_that_the_page_shows(caller: Caller, path: Path) -> None:
    fill_journal(path, 7)
    known = caller.list_rounds()
    names, texts, (first, *_, last) = known["names"], known["texts"], known["rounds"]
    assert names == [f"site-{k}" for k in range(12)] and first["client"] == list(range(12))
    assert first["weight"] == [0.1, 0.1, 0, *[0.1] * 7, 0, 0] and first["distance"][1:4] == [1.1, None, 1.3]
    assert first["flags"] == [2, 2, 0, *[2] * 7, 3, 3] and first["size"][11] == 111
    assert texts[first["reason"][11]] == "9.5 from the centre, beyond tau 2" and first["reputation"][11] == 0.8
    assert (first["tau"], first["f"], texts[first["f_asked"]], texts[first["rule"]]) == (2.01, 2, "0.2", "tq(f=2)")
    assert [(texts[name], texts[value]) for name, value in last["metrics"]] == [("loss", "0.142857")]
    assert texts[last["skipped"]] == "QuorumError: too few sound replies" and last["tau"] is None
    assert "running_mean" in texts[known["rounds"][3]["aside"][1]]


def test_odd_values_in_a_line_become_none_or_text(caller: Caller, path: Path) -> None:
    odd = {"client": ["a"], "weight": "<b>", "distance": 1e999, "size": True, "reputation": {}, "reason": 7}
    line = {"journal": 1, "rule": 3, "round": "<b>", "f": 1e999, "tau": 10**400, "clients": [odd], "metrics": 5}
    path.write_text(json.dumps(line) + "\n")
    known = caller.list_rounds()
    (one,) = known["rounds"]
    assert [one[name] for name in ("weight", "distance", "size", "reputation")] == [[None]] * 4
    assert one["round"] is None and one["f"] is None and one["tau"] is None and one["metrics"] == []
    assert known["names"] == ["['a']"] and known["texts"][one["reason"][0]] == "7"


def test_names_are_data_and_never_markup(caller: Caller, path: Path) -> None:
    fill_hostile(path)
    status, headers, page = caller.ask("/")
    assert status == 200 and headers["content-type"] == "text/html; charset=utf-8" and HOSTILE not in page
    status, headers, text = caller.ask("/rounds")
    assert headers["content-type"] == "application/json; charset=utf-8"
    assert headers["x-content-type-options"] == "nosniff" and json.loads(text)["names"] == list(NAMES)


def test_every_answer_has_a_strict_policy(caller: Caller) -> None:
    for path in ("/", "/rounds", "/none"):
        _, headers, _ = caller.ask(path)
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'") and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy and "http:" not in policy and "*" not in policy
        assert headers["cache-control"] == "no-store" and "access-control-allow-origin" not in headers
    page = caller.ask("/")
    assert "connect-src 'self'" in page[1]["content-security-policy"]
    assert page[1]["content-security-policy"].removesuffix("; frame-ancestors 'none'") in page[2]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "", "[", "0.0.0.0"])
def test_a_request_by_another_name_is_refused(caller: Caller, path: Path, host: str) -> None:
    fill_journal(path, 1)
    for place in ("/", "/rounds"):
        status, _, text = caller.ask(place, Host=host)
        assert status == 421 and "site-" not in text and "<" not in text


@pytest.mark.parametrize("host", ["localhost:9000", "127.0.0.1", "LOCALHOST"])
def test_a_request_through_a_tunnel_is_answered(caller: Caller, host: str) -> None:
    assert caller.ask("/rounds", Host=host)[0] == 200


@pytest.mark.parametrize(
    ("path_", "method", "status"),
    [
        ("/../rounds.jsonl", "GET", 404),
        ("/rounds.jsonl", "GET", 404),
        ("/rounds?first=x", "GET", 400),
        ("/rounds?names=-1", "GET", 400),
        ("/", "POST", 501),
        ("/", "DELETE", 501),
    ],
)
def test_anything_else_is_refused(caller: Caller, path: Path, path_: str, method: str, status: int) -> None:
    fill_journal(path, 1)
    answer = caller.ask(path_, method)
    assert answer[0] == status and "site-" not in answer[2]


def test_it_listens_on_this_machine_alone(caller: Caller) -> None:
    assert caller.server.server_address[0] == "127.0.0.1"


def test_the_command_refuses_what_it_cannot_follow(tmp_path: Path, path: Path, caller: Caller) -> None:
    def refuse(*words: object) -> str:
        done = CliRunner().invoke(app, ["watch", *map(str, words)])
        assert done.exit_code != 0
        return f"{done.output} {done.exception}"

    (tmp_path / "notes.txt").write_text("no line of mine\n")
    assert "must be a store of runs or the journal of a server" in refuse(tmp_path / "notes.txt")
    assert "must be the journal of a server, got a store" in refuse(fill_small(tmp_path / "runs.jsonl"))
    assert "there is no folder" in refuse(tmp_path / "none" / "rounds.jsonl")
    assert "port must be free" in refuse(path, "--port", caller.server.server_port)
