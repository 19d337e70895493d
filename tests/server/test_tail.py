"""A journal that is followed: each round comes once, whole, and in order, whatever the run does to the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from robagg.server import ClientVerdict, Journal, RoundReport
from robagg.server import tail as following
from robagg.server.journal import list_files
from robagg.server.tail import JournalTail


def write(journal: Journal, *numbers: int) -> None:
    for number in numbers:
        report = RoundReport("tq(f=1)", (ClientVerdict("site-1", 0.5),), round=number, run="a" * number)
        journal.write(journal.seal(report.to_entry()))


def read(tail: JournalTail) -> list[int]:
    return [report.round for report in tail.read()]


@pytest.mark.parametrize("options", [{}, {"max_bytes": 900}])
def test_each_round_comes_once_also_when_files_are_renamed(tmp_path: Path, options: dict[str, Any]) -> None:
    path = tmp_path / "rounds.jsonl"
    tail = JournalTail(path)
    assert read(tail) == []
    journal = Journal(path, **options)
    seen: list[int] = []
    for number in range(1, 12):
        write(journal, number)
        if number % 3:
            seen += read(tail)
    assert seen + read(tail) == list(range(1, 12))
    assert (len(list(tmp_path.iterdir())) > 2) == bool(options)
    assert not tail.is_replaced() and read(JournalTail(path)) == list(range(1, 12))


def test_a_file_that_is_renamed_in_the_middle_of_a_reading_loses_no_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rounds.jsonl"
    journal = Journal(path, max_bytes=900)
    write(journal, 1)
    tail = JournalTail(path)
    assert read(tail) == [1]
    numbers = iter(range(2, 40))

    def list_late(journal_path: Path) -> list[Path]:
        files = list_files(journal_path)
        while len(list_files(journal_path)) == len(files) and len(files) < 4:
            write(journal, next(numbers))
        return files

    monkeypatch.setattr(following, "list_files", list_late)
    seen = [number for _ in range(6) for number in read(tail)]
    assert seen == list(range(2, next(numbers)))


def test_half_a_line_is_left_until_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    write(Journal(path), 1, 2)
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    tail = JournalTail(path)
    for end in (first // 2, first - 2):
        path.write_bytes(whole[:end])
        assert read(tail) == []
    path.write_bytes(whole[: first - 1])  # all of it but its newline
    assert read(tail) == [1]
    path.write_bytes(whole[: first + 40])
    assert read(tail) == []
    path.write_bytes(whole)
    assert read(tail) == [2] and tail.strange == 0


def test_lines_that_hold_no_round_are_counted_once(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    write(Journal(path), 1)
    with path.open("ab") as file:
        file.write(b"odd\n\n[]\n" + json.dumps({"journal": 1, "rule": "tq", "clients": 7}).encode() + b"\n")
    tail = JournalTail(path)
    assert read(tail) == [1] and tail.strange == 3
    assert read(tail) == [] and tail.strange == 3


def test_another_journal_in_its_place_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    write(Journal(path), 1, 2)
    tail = JournalTail(path)
    assert not tail.is_replaced() and read(tail) == [1, 2] and not tail.is_replaced()
    write(Journal(path), 3)
    assert not tail.is_replaced()
    path.unlink()
    assert tail.is_replaced()
    write(Journal(path), 5, 6, 7, 8)
    assert tail.is_replaced()
