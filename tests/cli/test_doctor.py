"""`robagg doctor` says what runs and why not more, and its self-test finds what is broken."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from typer.testing import CliRunner

from robagg.cli import doctor
from robagg.cli.app import app
from robagg.kernels import cpu_library


def test_what_is_there_is_said_and_the_self_test_passes() -> None:
    shown = CliRunner().invoke(app, ["doctor"])
    assert shown.exit_code == 0, shown.output
    for words in (
        f"torch {torch.__version__.split('+')[0]}",
        "CPU kernels: ",
        "threads: torch uses",
        "mnist is",
        "self-test: passed",
    ):
        assert words in shown.output


def test_why_kernels_do_not_run_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_library, "_open", lambda: "it was not built: there was no C compiler")
    assert doctor.describe_cpu() == (
        "torch, since the compiled library cannot run: it was not built: there was no C compiler"
    )
    if not torch.cuda.is_available():
        assert "none that torch" in doctor.describe_gpu()


def test_the_reference_that_the_environment_asks_for_is_named() -> None:
    code = "from robagg.cli.doctor import describe_cpu; print(describe_cpu())"
    environment = {**os.environ, "ROBAGG_KERNEL": "reference"}
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert said.stdout.strip() == "torch, as ROBAGG_KERNEL asks"


def test_a_broken_kernel_fails_the_self_test(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = doctor.parse

    def break_median(text: str, f: int) -> object:
        return (lambda x: whole(text, f=f)(x) + 1) if text == "cm" else whole(text, f=f)

    monkeypatch.setattr(doctor, "parse", break_median)
    shown = CliRunner().invoke(app, ["doctor"])
    assert shown.exit_code == 1
    assert "cm on cpu is not the reference's median" in shown.output and "self-test: failed" in shown.output
