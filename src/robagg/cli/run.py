"""`robagg run`: one federated training under attack."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from robagg._core.rule import parse as parse_rule
from robagg.attacks import parse as parse_attack
from robagg.cli.plugins import PluginFiles, load_plugins
from robagg.cli.threads import Threads, set_threads
from robagg.lab.execution import store
from robagg.splits import splits
from robagg.tasks.base import federate, tasks
from robagg.training import Loop, Result
from robagg.training.trainer import Progress as Report


def run(
    task: Annotated[str, typer.Option(help="what is learnt: see `robagg list tasks`")] = "digits",
    rule: Annotated[str, typer.Option(help='rule or chain, such as tq or "nnm >> cm"')] = "tq",
    attack: Annotated[str, typer.Option(help="what the Byzantine clients do: see `robagg list attacks`")] = "ipm",
    n: Annotated[int | None, typer.Option("--n", help="clients; default: the task's")] = None,
    f: Annotated[int, typer.Option("--f", help="how many of them are Byzantine; also the rule's f")] = 6,
    rho: Annotated[float | None, typer.Option(help="heterogeneity of the paper's split, 0 to 1; default: 0.5")] = None,
    split: Annotated[str | None, typer.Option(help="another split, such as dirichlet(alpha=0.1)")] = None,
    rounds: Annotated[int | None, typer.Option(help="default: the task's")] = None,
    batch: Annotated[int | None, typer.Option(help="samples a client draws each step")] = None,
    momentum: Annotated[float | None, typer.Option(help="of the honest clients")] = None,
    rate: Annotated[float | None, typer.Option(help="learning rate")] = None,
    local_steps: Annotated[int | None, typer.Option(help="steps a client makes before it sends")] = None,
    share: Annotated[float | None, typer.Option(help="share of the clients asked in each round")] = None,
    schedule: Annotated[
        str | None, typer.Option(help='of the rate: cosine, linear, or points and factors, "0.5:0.1, 300:0.1"')
    ] = None,
    weight_decay: Annotated[float | None, typer.Option(help="of the clients")] = None,
    client_optimiser: Annotated[
        str | None, typer.Option(help='of torch.optim, such as "adamw(weight_decay=0.01)"; with --momentum 0')
    ] = None,
    server_optimiser: Annotated[str | None, typer.Option(help="of torch.optim, such as adam")] = None,
    root: Annotated[int | None, typer.Option(help="training samples that the server keeps, for fltrust, monna")] = None,
    evaluate_every: Annotated[int | None, typer.Option(help="rounds between evaluations")] = None,
    seed: Annotated[int, typer.Option()] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda")] = "auto",
    threads: Threads = None,
    data: Annotated[Path | None, typer.Option(help="folder of the data; default $ROBAGG_DATA, or a cache")] = None,
    plugin: PluginFiles = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the result as JSON, for programs")] = False,
) -> None:
    """Train a task under attack and show who was believed.

    Examples:

        robagg run --task digits --rule tq --attack ipm

        robagg run --task mnist --rule "nnm >> cm" --attack alie --n 20 --f 6 --rho 0.5 --rounds 300

        robagg run --task digits --rule tq --attack bf --split "dirichlet(alpha=0.1)" --json
    """
    load_plugins(plugin)
    set_threads(threads)
    what = tasks.parse(task)
    given = {
        "rounds": rounds,
        "batch": batch,
        "momentum": momentum,
        "rate": rate,
        "local_steps": local_steps,
        "share": share,
        "schedule": None if schedule is None else read_schedule(schedule),
        "weight_decay": weight_decay,
        "client_optimiser": client_optimiser,
        "server_optimiser": server_optimiser,
        "root": root,
        "evaluate_every": evaluate_every,
    }
    settings = what.settings.change({k: v for k, v in given.items() if v is not None})
    chosen, against = parse_rule(rule, f=f), parse_attack(attack)
    if rho is not None and split is not None:
        raise ValueError(f"--split or --rho must be given, not both, got {split} and rho={rho}")
    dealt = splits.parse(split or f"rho(rho={0.5 if rho is None else rho})")
    count = n or what.n
    federation, dataset = federate(
        what, chosen, against, dealt, n=count, f=f, seed=seed, settings=settings, root=data, device=device
    )
    console = Console(stderr=as_json)
    console.print(
        Text.assemble(
            (what.title, "bold"),
            f", {count} clients of which {f} attack: ",
            (f"{against}", "bold"),
            f" ({against.describe(count, f)}). Rule ",
            (f"{chosen}", "bold"),
            f", split {dealt}, d={federation.flat.d:,}, on {federation.device}",
        )
    )
    with follow(console, settings.rounds) as report:
        test = (dataset.test_x, dataset.test_y)
        result = Loop(federation, test, progress=report, metrics=what.metrics).run()
    if as_json:
        typer.echo(json.dumps(summarise(result, federation.flat.d)))
    else:
        show_result(console, result, count, f)


def read_schedule(text: str) -> str | tuple[tuple[float, float], ...]:
    """A schedule's name, or its points and factors.

    >>> read_schedule("0.5:0.1, 300:0.1"), read_schedule("cosine")
    (((0.5, 0.1), (300.0, 0.1)), 'cosine')
    """
    if ":" not in text:
        return text
    try:
        return tuple((float(at), float(factor)) for at, factor in (pair.split(":") for pair in text.split(",")))
    except ValueError as error:
        raise ValueError(f'schedule must be written as "0.5:0.1, 300:0.1" or by name, got {text!r}') from error


@contextmanager
def follow(console: Console, rounds: int) -> Iterator[Report]:
    """A progress bar with rounds a second, the time left and the current accuracy."""
    columns = (
        TextColumn("round"),
        MofNCompleteColumn(),
        BarColumn(),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[accuracy]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        row = bar.add_task("", total=rounds, speed="", accuracy="")
        begin = last = time.perf_counter()

        def report(done: int, total: int, accuracy: float | None) -> None:
            nonlocal last
            now = time.perf_counter()
            if now - last < 0.1 and done < total:
                return
            last = now
            shown = "" if accuracy is None else f"accuracy {accuracy:.2f}%"
            bar.update(row, completed=done, speed=f"{done / (now - begin):.1f}/s", accuracy=shown)

        yield report


def show_result(console: Console, result: Result, n: int, f: int) -> None:
    """The result in a few lines."""
    weights = torch.tensor(result.trace.weights).reshape(len(result.trace.weights), n)  # NaN: not asked in that round
    honest, byzantine = (float(part.nansum(1).mean()) for part in (weights[:, : n - f], weights[:, n - f :]))
    what = "accuracy [bold]none[/]" if result.diverged is not None else "done"  # measured values have none
    what = what if result.accuracy is None else f"accuracy [bold]{result.accuracy:.2f}%[/]"
    console.print(f"{what} after {result.rounds} rounds, {result.seconds:.1f} s", highlight=False)
    for name, value in result.metrics.items():
        shown = ", ".join(f"{part:.4g}" for part in (value if isinstance(value, list) else [value]))
        console.print(f"{name.replace('_', ' ')}: {shown}", highlight=False, markup=False)
    if len(weights):
        console.print(
            f"weight given: honest {100 * honest:.1f}%, Byzantine {100 * byzantine:.1f}%, "
            f"the rest {100 * max(0.0, 1 - honest - byzantine):.1f}% (mean over the recorded rounds)",
            highlight=False,
        )
    for note in result.notes:
        console.print(note, highlight=False, markup=False)


def summarise(result: Result, d: int) -> dict[str, Any]:
    """The result as JSON takes it."""
    return {
        "accuracy": result.accuracy,
        "curve": result.curve,
        "metrics": {name: store(value) for name, value in result.metrics.items()},
        "diverged": result.diverged,
        "rounds": result.rounds,
        "seconds": round(result.seconds, 3),
        "device": result.device,
        "d": d,
        "notes": result.notes,
        "trace": result.trace.pack(),
    }
