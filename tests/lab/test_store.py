"""A store loses at most the record that was being written, and says what it skips."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from robagg.lab import RESULTS_VERSION, Store, StoreBusyError
from robagg.lab.contents import Contents
from robagg.lab.loading import keep_newest


def record(key: str, status: str = "ok", **more: Any) -> dict[str, Any]:
    return {"robagg": RESULTS_VERSION, "key": key, "status": status, **more}


def fill(path: Path, *keys: str) -> bytes:
    with Store(path) as store:
        for key in keys:
            store.append(record(key, words=f"ä {key}"))
    return path.read_bytes()


def test_a_store_cut_at_any_byte_loses_one_record_and_goes_on(tmp_path: Path) -> None:
    whole = fill(tmp_path / "whole.jsonl", "a", "b")
    first = whole.index(b"\n") + 1
    path = tmp_path / "cut.jsonl"
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        kept = [key for key, least in (("a", first - 1), ("b", len(whole) - 1)) if size >= least]
        assert list(Store(path).read().records) == kept
        with Store(path) as store:
            assert list(store.records) == kept
            assert bool(store.notes) == (size not in (0, first, len(whole))), (size, store.notes)
            store.append(record("c"))
        assert list(Store(path).read().records) == [*kept, "c"]
        assert Store(path).read().notes == []


def test_torn_line_other_version_and_binary_blob_are_skipped_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    good = fill(path, "a", "b")
    other = json.dumps({"robagg": RESULTS_VERSION + 1, "key": "z", "status": "ok"}, separators=(",", ":")).encode()
    blob = b"\x00\xff\x80\n" + bytes(range(128, 256)) + b"\n"
    stuck = b"\0" * 512 + json.dumps(record("c"), separators=(",", ":")).encode() + b"\n"
    path.write_bytes(other + b"\n" + good + blob + b"[1, 2]\n" + stuck + b'{"robagg":1,"key":"d","st')
    contents = Store(path).read()
    assert list(contents.records) == ["a", "b"]
    notes = "; ".join(contents.notes)
    assert "the last line is torn after 25 bytes" in notes
    assert f"1 line is of results version {RESULTS_VERSION + 1}" in notes
    assert "lines that are no record were skipped: 4, 5, 6, 7" in notes
    with Store(path) as store:
        assert "was torn after 25 bytes and is cut off" in store.notes[0]
        store.append(record("d"))
    assert list(Store(path).read().records) == ["a", "b", "d"]


@pytest.mark.parametrize("other", [b"\x89PNG\r\n\x1a\nand so on", b'{\n "name": 3\n}\n', b"rules = ['tq']\n", b"{\n"])
def test_a_file_that_is_no_store_is_neither_read_nor_written(other: bytes, tmp_path: Path) -> None:
    path = tmp_path / "sweep.toml"
    path.write_bytes(other)
    with pytest.raises(ValueError, match=r"sweep\.toml must be a store of runs, got a file in which no line is"):
        Store(path).read()
    with pytest.raises(ValueError, match="must be a store of runs"), Store(path):
        pass
    assert path.read_bytes() == other


@pytest.mark.parametrize("path", ["/dev/full", "/dev/zero", "/"])
def test_what_is_no_file_is_neither_read_nor_written(path: str) -> None:
    with pytest.raises(ValueError, match=f"a store must be a file, got {path}, which is a"):
        Store(path).read()
    with pytest.raises(ValueError, match=f"a store must be a file, got {path}, which is a"), Store(path):
        pass


def test_a_last_line_without_its_end_gets_one(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    whole = fill(path, "a")
    path.write_bytes(whole + b"a note")
    with Store(path) as store:
        assert store.notes[0] == "the last line had no end and got one"
        store.append(record("b"))
    assert path.read_bytes().startswith(whole + b"a note\n{")
    assert list(Store(path).read().records) == ["a", "b"]


def test_every_flip_of_a_bit_is_noticed(tmp_path: Path) -> None:
    """In each bit of a record in turn; the records around it stay."""
    path = tmp_path / "runs.jsonl"
    whole = fill(path, "a", "b", "c")
    begin = whole.index(b"\n") + 1
    good = Store(path).read().records
    for place in range(begin, whole.index(b"\n", begin)):
        for bit in range(8):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
            contents = Store(path).read()
            assert contents.notes, (place, bit)
            assert contents.records == {key: good[key] for key in ("a", "c")}


def test_records_without_a_checksum_are_read_as_before(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text('{"robagg":1,"key":"a","status":"ok"}\n')
    assert Store(path).read().records == {"a": record("a")} and Store(path).read().notes == []


def test_doubled_and_joined_records_are_named_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    lines = fill(path, *"abcd").splitlines(keepends=True)
    old = b'{"robagg":1,"key":"e","status":"ok"}' * 2 + b"\n"
    path.write_bytes(lines[0] + lines[1].rstrip() + lines[2] + lines[0] + lines[3] + old)
    contents = Store(path).read()
    assert list(contents.records) == ["a", "d"]
    assert contents.notes == [
        "lines that hold more than one record were left out: 2, 5",
        "lines that repeat a run that has a result before were left out: 3",
    ]


def test_reading_is_linear_in_marks(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(fill(path, "a") + b'{"robagg":' * 30_000 + b"\n")
    assert list(Store(path).read().records) == ["a"]


def test_a_result_is_there_once_and_a_failure_gives_way_to_it(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with Store(path) as store:
        store.append(record("a", "failed"))
        store.append(record("a", "ok"))
        with pytest.raises(ValueError, match="has a result for the run a already"):
            store.append(record("a"))
    assert [r["status"] for r in Store(path).read().records.values()] == ["ok"]
    with Store(path) as store, pytest.raises(ValueError, match="a already"):
        store.append(record("a"))


def test_two_writers_are_kept_apart_and_a_dead_one_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    code = f"from robagg.lab import Store\nwith Store({str(path)!r}):\n    print('in', flush=True)\n    input()"
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdin is not None
    assert other.stdout.readline().strip() == b"in"
    with pytest.raises(StoreBusyError, match="another process is writing to"), Store(path):
        pass
    assert Store(path).read().records == {}, "reading needs no lock"
    other.kill()
    other.wait()
    other.stdin.close()
    other.stdout.close()
    fill(path, "a")


def test_half_a_line_is_taken_back_when_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.jsonl"
    before = fill(path, "a")
    with Store(path) as store:
        monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(OSError, match=r"runs.jsonl cannot be written \(No space left.*the finished run b is lost"):
            store.append(record("b"))
    assert path.read_bytes() == before


def test_a_finished_run_is_kept_beside_a_full_disk_and_taken_in_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, sync, full = tmp_path / "runs.jsonl", os.fsync, [True]

    def refuse_once(handle: int) -> None:
        if full and full.pop():
            raise OSError(28, "No space left on device")
        sync(handle)

    before = fill(path, "a")
    with Store(path) as store:
        monkeypatch.setattr(os, "fsync", refuse_once)
        with pytest.raises(OSError, match=r"the finished run b is kept in .*runs\.jsonl\.unsaved: when there is space"):
            store.append(record("b"))
    assert path.read_bytes() == before
    with Store(path) as store:
        assert list(store.records) == ["a", "b"] and store.notes == ["1 run kept in runs.jsonl.unsaved taken in"]
    assert list(Store(path).read().records) == ["a", "b"] and not path.with_name("runs.jsonl.unsaved").exists()


def test_of_several_sources_the_last_that_came_to_a_result_is_kept(tmp_path: Path) -> None:
    def run(key: str, seed: int, source: str | None, status: str = "ok", at: str | None = "2030") -> dict[str, Any]:
        return record(
            key,
            status,
            spec={"rule": "mine", "seed": seed},
            finished=at,
            **({} if source is None else {"plugins": {"Mine": source}}),
        )

    def keep(*runs: dict[str, Any]) -> list[str]:
        contents = Contents({r["key"]: r for r in runs})
        kept = keep_newest(contents)
        assert len(kept.notes) == (len(kept.records) < len(runs))
        return list(kept.records)

    assert keep(run("a0", 0, "a"), run("a1", 1, "a"), run("b0", 0, "b")) == ["b0"], "ties go to the last in the file"
    assert keep(run("b0", 0, "b", at="2031"), run("a0", 0, "a")) == ["b0"]
    assert keep(run("a0", 0, "a"), run("b0", 0, "b", "failed", at="2031")) == ["a0"]
    assert keep(run("a0", 0, "a", at=None), run("b0", 0, "b")) == ["b0"]
    assert keep(run("x0", 0, None, "failed"), run("b0", 0, "b")) == ["b0"], "a failure that was done again"
    assert keep(run("x1", 1, None, "failed"), run("b0", 0, "b")) == ["x1", "b0"]
    assert keep(run("a0", 0, "a"), record("odd", spec=3)) == ["a0", "odd"]


def test_odd_lines_do_not_stop_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    good = fill(path, "a")
    path.write_bytes(good + b'{"robagg":[1],"key":"b"}\n{"robagg":' + b"[" * 20_000 + b"\n")
    contents = Store(path).read()
    assert list(contents.records) == ["a"] and "results version [1]" in contents.notes[0]


def test_what_is_no_number_is_refused(tmp_path: Path) -> None:
    with Store(tmp_path / "runs.jsonl") as store:
        with pytest.raises(ValueError, match="not JSON compliant"):
            store.append(record("a", accuracy=float("nan")))
        with pytest.raises(ValueError, match="must begin with its version"):
            store.append({"key": "a", "status": "ok"})
    with pytest.raises(RuntimeError, match="inside `with store:`"):
        Store(tmp_path / "runs.jsonl").append(record("a"))
