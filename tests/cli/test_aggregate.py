"""`robagg aggregate` as people type it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import robagg as ra
from files.making import draw_models, load, save_all
from robagg.cli.app import app

run = CliRunner()


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    models = draw_models(6)
    models[2]["wide.bias"][3] = float("nan")
    return [str(path) for path in save_all(tmp_path, models)]


def test_the_verdict_is_printed_by_name_and_as_json(paths: list[str], tmp_path: Path) -> None:
    out = str(tmp_path / "out.safetensors")
    told = run.invoke(app, ["aggregate", *paths, "-o", out, "--rule", "nnm >> tq", "--f", "2", "--memory", "2GB"])
    assert told.exit_code == 0, told.output
    assert f"    2  {paths[2]}" in told.output
    assert "nnm(f=2) >> tq(f=2): 6 rows" in told.output
    assert f"written: {out}" in told.output
    verdict = json.loads(run.invoke(app, ["aggregate", *paths, "-o", out, "--f", "0.4", "--json"]).stdout)
    assert verdict["rule"] == "caf(f=0.4)"
    assert verdict["clients"][2] == {
        "path": paths[2],
        "weight": 0.0,
        "distance": None,
        "rejected": True,
        "reason": "not finite",
    }
    assert sum(client["weight"] for client in verdict["clients"]) == pytest.approx(1)


def test_claims_and_a_base_reach_the_rule(paths: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out.safetensors"
    more = [
        "--rule",
        "mean",
        "--f",
        "1",
        "--weights",
        "3,1,1,1,1,1",
        "--max-weight",
        "0.5",
        "--base",
        paths[0],
        "--json",
    ]
    verdict = json.loads(run.invoke(app, ["aggregate", *paths, "-o", str(out), *more]).stdout)
    assert [client["weight"] for client in verdict["clients"]] == pytest.approx([3 / 7, 1 / 7, 0, 1 / 7, 1 / 7, 1 / 7])
    models = draw_models(6)
    kept = [models[k] for k in (0, 1, 3, 4, 5)]
    expected = ra.Mean(f=1)(kept, weights=[3, 1, 1, 1, 1], max_weight=0.5)
    assert torch.allclose(load(out)["wide.bias"], expected["wide.bias"], atol=1e-6)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--memory", "much"], "memory must be a size such as 2GB"),
        (["--weights", "1,x"], "weights must be numbers with commas"),
        (["--rank", "3"], "--rank must come with --lora"),
        (["--lora", "--base", "m.safetensors"], "--base must not be given with --lora"),
        (["--lora", "--rule", "tq"], "needs the median"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(more: list[str], words: str, paths: list[str], tmp_path: Path) -> None:
    told = run.invoke(app, ["aggregate", *paths, "-o", str(tmp_path / "out.safetensors"), *more])
    assert words in str(told.exception)
    assert not (tmp_path / "out.safetensors").exists()
