"""Headers of hostile files end in a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from files.making import load, save
from robagg.files.header import LONGEST, FileFaultError, read_header, read_length, write_header
from robagg.files.safetensors import SafetensorsFile


def entry(word: object = "F32", shape: object = (2,), start: object = 0, stop: object = 8) -> dict[str, object]:
    return {"dtype": word, "shape": shape, "data_offsets": [start, stop]}


WRONG = {
    "no JSON": (b"{", "must be JSON"),
    "no UTF-8": (b"\xff\xfe{", "must be JSON"),
    "no object": (b"[1, 2]", "must be a JSON object"),
    "endless depth": (b'{"w":' * 100_000, "must be JSON"),
    "endless numbers": (b'{"w": ' + b"9" * 5000 + b"}", "must be JSON"),
    "a name twice": (b'{"w": %a, "w": %a}' % (1, 2), "names 'w' twice"),
    "a long name": (json.dumps({"w" * 1001: entry()}).encode(), "at most 1000 characters"),
    "a dtype unheard of": (json.dumps({"w": entry("F8_E4M3")}).encode(), "must be of F64, F32"),
    "a dtype that is none": (json.dumps({"w": entry(["F32"])}).encode(), "must be of F64, F32"),
    "a shape below zero": (json.dumps({"w": entry(shape=[-2])}).encode(), "whole numbers"),
    "a shape that is true": (json.dumps({"w": entry(shape=[True, 2])}).encode(), "whole numbers"),
    "too many dimensions": (json.dumps({"w": entry(shape=[1] * 65)}).encode(), "at most 64 whole numbers"),
    "a product beyond 64 bits": (json.dumps({"w": entry(shape=[2**40, 2**40])}).encode(), "must have the bytes"),
    "bytes beyond the file": (json.dumps({"w": entry(shape=[20], stop=80)}).encode(), "must lie within"),
    "bytes backwards": (json.dumps({"w": entry(start=8, stop=0)}).encode(), "must lie within"),
    "bytes of another count": (json.dumps({"w": entry(shape=[3])}).encode(), "must have the bytes of F32 [3], got 8"),
    "overlapping": (json.dumps({"v": entry(), "w": entry(start=4, stop=12)}).encode(), "overlap"),
    "a hole": (json.dumps({"w": entry(start=4, stop=12)}).encode(), "leave 4 bytes before them unused"),
    "bytes left over": (json.dumps({"w": entry()}).encode(), "must fill the file, got 8 of 16"),
    "more than it may say": (json.dumps({"w": {**entry(), "code": "x"}}).encode(), "and nothing else"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_hostile_header_ends_in_a_sentence(name: str) -> None:
    raw, words = WRONG[name]
    with pytest.raises(FileFaultError) as caught:
        read_header(raw, 16)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_header_may_not_be_longer_than_the_file_or_than_anybody_needs() -> None:
    with pytest.raises(FileFaultError, match="within the file"):
        read_length((101).to_bytes(8, "little"), 108)
    with pytest.raises(FileFaultError, match="at most"):
        read_length((LONGEST + 1).to_bytes(8, "little"), 10**12)
    with pytest.raises(FileFaultError, match="must begin with"):
        read_length(b"abc", 3)


def test_what_is_written_is_read_again() -> None:
    head, starts = write_header({"w": (torch.float16, (2, 3)), "b": (torch.bool, ()), "none": (torch.int64, (0, 5))})
    assert len(head) % 8 == 0
    spans = read_header(head[8:], 13)
    assert {name: (span.dtype, span.shape) for name, span in spans.items()} == {
        "w": (torch.float16, (2, 3)),
        "b": (torch.bool, ()),
        "none": (torch.int64, (0, 5)),
    }
    assert {name: len(head) + span.start for name, span in spans.items()} == starts


def test_a_file_that_was_cut_is_found_out_before_it_is_read(tmp_path: Path) -> None:
    whole = save(tmp_path / "whole.safetensors", {"w": torch.arange(10.0)})
    raw = whole.read_bytes()
    for size in range(len(raw)):
        short = tmp_path / "short.safetensors"
        short.write_bytes(raw[:size])
        with pytest.raises(FileFaultError):
            SafetensorsFile(short)
    assert load(whole)["w"].tolist() == list(range(10))


def test_a_file_that_changes_while_it_is_read_is_a_fault(tmp_path: Path) -> None:
    path = save(tmp_path / "a.safetensors", {"w": torch.arange(10.0)})
    file = SafetensorsFile(path)
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(FileFaultError, match="changed while it was read"):
        file.read("w", 0, torch.empty(2))


def test_a_byte_that_is_no_bool_is_read_as_true(tmp_path: Path) -> None:
    path = save(tmp_path / "a.safetensors", {"w": torch.tensor([False, True, True])})
    path.write_bytes(path.read_bytes()[:-1] + b"\x07")
    assert load(path)["w"].view(torch.uint8).tolist() == [0, 1, 1]
