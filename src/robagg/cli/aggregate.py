"""`robagg aggregate`: models in files into one, or LoRA adapters into one."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from robagg import Verdict, parse
from robagg.cli.plugins import PluginFiles, load_plugins
from robagg.cli.threads import Threads, set_threads
from robagg.cli.waiting import wait
from robagg.files import aggregate_adapters, aggregate_files
from robagg.files.chunks import Progress as Report

SIZES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


def aggregate(
    paths: Annotated[list[Path], typer.Argument(help="a file a client; with --lora, a folder a client")],
    out: Annotated[Path, typer.Option("-o", "--out", help="the .safetensors file to write; with --lora, the folder")],
    rule: Annotated[str, typer.Option(help='rule or chain, such as caf or "nnm >> tq"')] = "caf",
    f: Annotated[float | None, typer.Option(help="how many may be Byzantine: 2, or a share such as 0.2")] = None,
    base: Annotated[Path | None, typer.Option(help="the model that all started from: differences are to it")] = None,
    weights: Annotated[str | None, typer.Option(help="what each client claims to count, such as 3,1,2")] = None,
    max_weight: Annotated[float | None, typer.Option(help="the largest share that a claim can give a client")] = None,
    memory: Annotated[str, typer.Option(help="how much the work may take, beside Python and its libraries")] = "1GB",
    lora: Annotated[bool, typer.Option("--lora", help="the clients sent LoRA adapters, in PEFT's folders")] = False,
    rank: Annotated[int | None, typer.Option(help="with --lora: cut the result to this rank")] = None,
    seed: Annotated[int, typer.Option(help="for rules that draw")] = 0,
    threads: Threads = None,
    plugin: PluginFiles = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the verdict as JSON, for programs")] = False,
) -> None:
    """Aggregate one file a client (.safetensors, its index, .npz, .pt) into one, in chunks: models may exceed memory.

    Examples:

        robagg aggregate a.safetensors b.safetensors c.safetensors -o out.safetensors --rule "nnm >> tq" --f 1

        robagg aggregate clients/*.safetensors -o out.safetensors --rule rfa --base model.safetensors --weights 3,1,2

        robagg aggregate --lora alice bob carol -o merged --rule krum --rank 16
    """
    load_plugins(plugin)
    set_threads(threads)
    chosen = parse(rule, f=int(f) if f is not None and f.is_integer() else f)
    claims = None if weights is None else read_weights(weights)
    more: dict[str, Any] = {
        "weights": claims,
        "max_weight": max_weight,
        "generator": torch.Generator().manual_seed(seed),
    }
    console = Console(stderr=True)
    if lora:
        if base is not None:
            raise ValueError("--base must not be given with --lora: adapters are differences to their model already")
        with wait("aggregating adapters"):
            verdict = aggregate_adapters(paths, out, chosen, rank=rank, **more)
    else:
        if rank is not None:
            raise ValueError(f"--rank must come with --lora, got --rank {rank} alone")
        with follow(console) as report:
            verdict = aggregate_files(paths, out, chosen, base=base, memory=read_size(memory), progress=report, **more)
    if as_json:
        typer.echo(json.dumps(summarise(verdict, paths)))
        return
    for k, path in enumerate(paths):
        typer.echo(f"{k:>5}  {path}")
    typer.echo(f"\n{verdict}\n\nwritten: {out}")


def read_size(text: str) -> int:
    """A number of bytes from text.

    >>> read_size("2GB"), read_size("1.5 GiB"), read_size("300000")
    (2000000000, 1610612736, 300000)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?", text.strip().upper())
    if found is None or found[2] not in SIZES:
        raise ValueError(f"memory must be a size such as 2GB or 500MiB, got {text!r}")
    return int(float(found[1]) * SIZES[found[2]])


def read_weights(text: str) -> list[float]:
    """Numbers from text, with commas between them.

    >>> read_weights("3,1,2.5")
    [3.0, 1.0, 2.5]
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"weights must be numbers with commas between them, such as 3,1,2, got {text!r}") from None


def summarise(verdict: Verdict, paths: list[Path]) -> dict[str, Any]:
    """The verdict as JSON takes it."""
    distances = verdict.distances.tolist()
    clients = [
        {
            "path": str(path),
            "weight": float(verdict.weights[k]),
            "distance": distances[k] if math.isfinite(distances[k]) else None,
            "rejected": bool(verdict.rejected[k]),
            "reason": verdict.reasons[k],
        }
        for k, path in enumerate(paths)
    ]
    return {
        "out": str(verdict.value),
        "rule": verdict.rule,
        "f": verdict.f,
        "tau": verdict.tau,
        "median_weight": verdict.median_weight,
        "note": verdict.note,
        "unprotected": verdict.unprotected,
        "clients": clients,
    }


@contextmanager
def follow(console: Console) -> Iterator[Report]:
    """A progress bar on a terminal, for each pass over the files."""
    columns = (TextColumn("pass {task.fields[number]}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        row = bar.add_task("", number=1)

        def report(number: int, done: int, total: int) -> None:
            bar.update(row, completed=done, total=total, number=number)

        yield report
