"""Rules on what clients really send, one state dict each: beside torch's mean key by key, and beside one (n, d) tensor.

python benchmarks/nests.py [--json PATH]
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import robagg as ra
from robagg import kernels
from robagg.models import build
from timing import describe_machine, take_turns

RULES = ("mean", "cm", "krum", "tq", "nnm >> cm", "nnm >> tq")
MODELS = ("cnn", "resnet20")
N, F = 20, 6


def make_rows(model: str) -> list[dict[str, Tensor]]:
    """What n clients send: the weights, each moved a little. Without counters, which have no mean."""
    torch.manual_seed(0)
    state = build(model).state_dict()
    floats = {name: tensor for name, tensor in state.items() if tensor.is_floating_point()}
    return [{name: tensor + 0.01 * torch.randn_like(tensor) for name, tensor in floats.items()} for _ in range(N)]


def average(rows: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {name: torch.stack([row[name] for row in rows]).mean(0) for name in rows[0]}


def measure(model: str, seconds: float) -> dict[str, Any]:
    rows = make_rows(model)
    flat = torch.stack([torch.cat([tensor.flatten() for tensor in row.values()]) for row in rows])
    subjects = {"torch": partial(average, rows)}
    for text in RULES:
        rule = ra.parse(text, f=F)
        subjects |= {f"{text}, dicts": partial(rule, rows), f"{text}, tensor": partial(rule, flat)}
    times = {name: 1000 * taken for name, taken in take_turns(subjects, seconds=seconds).items()}
    ms = {text: {kind: times[f"{text}, {kind}"] for kind in ("dicts", "tensor")} for text in RULES}
    return {"n": N, "f": F, "d": flat.shape[1], "leaves": len(rows[0]), "torch_ms": times["torch"], "ms": ms}


def show(model: str, row: dict[str, Any]) -> None:
    print(f"\n{row['n']} state dicts, {model}: {row['leaves']} tensors, {row['d']:,} values")
    print(f"torch.stack(...).mean(0) of each: {row['torch_ms']:.2f} ms")
    print(f"{'rule':<12}{'dicts':>12}{'x that':>8}{'one tensor':>15}")
    for text, ms in row["ms"].items():
        print(f"{text:<12}{ms['dicts']:>9.2f} ms{ms['dicts'] / row['torch_ms']:>8.2f}{ms['tensor']:>12.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="for each model")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    record: dict[str, Any] = {"machine": describe_machine(), "kernel": kernels.active("cpu"), "models": {}}
    for model in MODELS:
        record["models"][model] = measure(model, options.seconds)
        show(model, record["models"][model])
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
