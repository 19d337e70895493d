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
from robagg.lab.loading import keep_newest
from robagg.lab.store import Contents


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


def test_bytes_that_are_not_ours_are_never_deleted(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\nand so on")
    with Store(path) as store:
        assert store.notes[0] == "the last line had no end and got one"
    assert path.read_bytes() == b"\x89PNG\r\n\x1a\nand so on\n"


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
        with pytest.raises(OSError, match="No space left"):
            store.append(record("b"))
    assert path.read_bytes() == before


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
