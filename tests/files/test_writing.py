"""The output is there whole, or what was there before is."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import robagg as ra
from files.making import draw_models, load, save, save_all
from robagg.files import aggregate_files

KILLED = """
import os, signal, sys
from robagg.files import aggregate_files

def report(number, done, total):
    if number == 2 and done == total // 2:
        os.kill(os.getpid(), signal.SIGKILL)

aggregate_files(sys.argv[2:], sys.argv[1], "tq", memory=4 * 9 * 4096, progress=report)
"""


@pytest.mark.slow
def test_who_is_killed_in_the_middle_leaves_no_output(tmp_path: Path) -> None:
    paths, out = save_all(tmp_path, draw_models(9)), tmp_path / "out.safetensors"
    command = [sys.executable, "-c", KILLED, str(out), *map(str, paths)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert not out.exists()
    assert len(list(tmp_path.glob(".out.safetensors.*.part"))) == 1, "it was not killed while it wrote"


def test_what_fails_in_the_middle_leaves_what_was_there(tmp_path: Path) -> None:
    paths = save_all(tmp_path, draw_models(9))
    out = save(tmp_path / "out.safetensors", {"old": torch.ones(3)})

    def stop(number: int, done: int, total: int) -> None:
        if number == 2 and done == total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        aggregate_files(paths, out, ra.TQ(f=2), memory=4 * 9 * 4096, progress=stop)
    assert load(out).keys() == {"old"}
    assert not list(tmp_path.glob(".*"))


def test_the_output_may_take_the_place_of_an_input(tmp_path: Path) -> None:
    models = draw_models(5)
    paths = save_all(tmp_path, models)
    aggregate_files(paths, paths[0], ra.CM(f=1))
    assert torch.equal(load(paths[0])["wide.bias"], ra.CM(f=1)(models)["wide.bias"])


def test_an_output_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"out must end in \.safetensors, got 'out\.npz'"):
        aggregate_files([], tmp_path / "out.npz", "tq")
