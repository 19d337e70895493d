"""Rules on all that is not a float32 tensor: state dicts, other dtypes; and rules with their verdict.

python benchmarks/kinds.py [--json PATH]
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
DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
N, F, D = 20, 6, 1_199_882


def make_rows(model: str) -> list[dict[str, Tensor]]:
    """What n clients send: the weights, each moved a little. Without counters, which have no mean."""
    torch.manual_seed(0)
    state = build(model).state_dict()
    floats = {name: tensor for name, tensor in state.items() if tensor.is_floating_point()}
    return [{name: tensor + 0.01 * torch.randn_like(tensor) for name, tensor in floats.items()} for _ in range(N)]


def average(rows: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {name: torch.stack([row[name] for row in rows]).mean(0) for name in rows[0]}


def measure_dicts(model: str, seconds: float) -> dict[str, Any]:
    """One state dict a client, beside torch's mean key by key and beside one (n, d) tensor."""
    rows = make_rows(model)
    flat = torch.stack([torch.cat([tensor.flatten() for tensor in row.values()]) for row in rows])
    subjects = {"torch": partial(average, rows)}
    for text in RULES:
        rule = ra.parse(text, f=F)
        subjects |= {f"{text}, dicts": partial(rule, rows), f"{text}, tensor": partial(rule, flat)}
    times = {name: 1000 * taken for name, taken in take_turns(subjects, seconds=seconds).items()}
    ms = {text: {kind: times[f"{text}, {kind}"] for kind in ("dicts", "tensor")} for text in RULES}
    return {"n": N, "f": F, "d": flat.shape[1], "leaves": len(rows[0]), "torch_ms": times["torch"], "ms": ms}


def show_dicts(model: str, row: dict[str, Any]) -> None:
    print(f"\n{row['n']} state dicts, {model}: {row['leaves']} tensors, {row['d']:,} values")
    print(f"torch.stack(...).mean(0) of each: {row['torch_ms']:.2f} ms")
    print(f"{'rule':<12}{'dicts':>12}{'x that':>8}{'one tensor':>15}")
    for text, ms in row["ms"].items():
        print(f"{text:<12}{ms['dicts']:>9.2f} ms{ms['dicts'] / row['torch_ms']:>8.2f}{ms['tensor']:>12.2f} ms")


def measure_dtypes(seconds: float) -> dict[str, dict[str, float]]:
    """Milliseconds of torch's mean and of some rules on a stack of each dtype."""
    torch.manual_seed(0)
    x = torch.randn(N, D)
    result = {}
    for dtype in DTYPES:
        rows = x.to(dtype)
        subjects = {"torch": partial(rows.mean, 0)} | {t: partial(ra.parse(t, f=F), rows) for t in ("cm", "tq")}
        times = take_turns(subjects, seconds=seconds)
        result[str(dtype).removeprefix("torch.")] = {name: 1000 * taken for name, taken in times.items()}
    return result


def measure_verdicts(seconds: float) -> dict[str, dict[str, float]]:
    """Milliseconds of each rule called, and asked to explain itself."""
    torch.manual_seed(0)
    x = torch.randn(N, D)
    rules = {text: ra.parse(text, f=F) for text in RULES}
    subjects = {f"{text}, called": partial(rule, x) for text, rule in rules.items()}
    subjects |= {f"{text}, explained": partial(rule.explain, x) for text, rule in rules.items()}
    times = take_turns(subjects, seconds=seconds)
    return {text: {way: 1000 * times[f"{text}, {way}"] for way in ("called", "explained")} for text in RULES}


def show_table(title: str, table: dict[str, dict[str, float]]) -> None:
    head = list(next(iter(table.values())))
    print(f"\n{title}, n={N}, d={D:,}: milliseconds")
    print(f"{'':<12}" + "".join(f"{name:>12}" for name in head))
    for name, row in table.items():
        print(f"{name:<12}" + "".join(f"{row[column]:>12.2f}" for column in head))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="for each table")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    record: dict[str, Any] = {"machine": describe_machine(), "kernel": kernels.active("cpu"), "models": {}}
    for model in MODELS:
        record["models"][model] = measure_dicts(model, options.seconds)
        show_dicts(model, record["models"][model])
    record |= {"n": N, "f": F, "d": D}
    record["dtypes"] = measure_dtypes(options.seconds / len(DTYPES))
    show_table("rows of each dtype", record["dtypes"])
    record["verdicts"] = measure_verdicts(options.seconds)
    show_table("with a verdict", record["verdicts"])
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
