"""`robagg worst-case RULE`: the worst stack found, beside what the theorems promise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from robagg._core.rule import Rule, parse
from robagg.cli.plugins import PluginFiles, load_plugins
from robagg.cli.threads import Threads, set_threads
from robagg.rules import TQ, Huber
from robagg.worst_case import HONEST, Placed, WorstCase, find_worst_case, find_worst_positions
from robagg.worst_case.search import Watch


def worst_case(
    rule: Annotated[str, typer.Argument(help="A rule or a pipeline, such as tq, krum or 'nnm >> tq'.")],
    n: Annotated[int | None, typer.Option(help="Rows; default: 11, or 20 among given honest rows.")] = None,
    f: Annotated[int | None, typer.Option(help="Byzantine rows among them; default: the most that n allows.")] = None,
    d: Annotated[int | None, typer.Option(help="Length of a row; default: 2.")] = None,
    budget: Annotated[
        int | None, typer.Option(help="Stacks to look at; default: 200,000, a quarter of it from far.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    tau: Annotated[str, typer.Option(help="estimated, true (from the honest rows), or both.")] = "both",
    start: Annotated[str, typer.Option(help="median, far (the search chooses it), or both.")] = "both",
    honest: Annotated[
        str | None,
        typer.Option(
            help=f"Search among given honest rows, {', '.join(HONEST)} or all; d is then 40, the budget 10,000."
        ),
    ] = None,
    threads: Threads = None,
    plugin: PluginFiles = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with the stacks.")] = False,
) -> None:
    """Search for the stack that moves a rule farthest from the honest mean, and show the paper's bound beside it.

    With --honest only the Byzantine rows are moved, among honest rows of a kind, and no bound is shown.
    TQ and Huber are searched with the estimated and the true tau, from the median and from far starts.

    Examples:

        robagg worst-case tq --n 11 --f 5

        robagg worst-case nearmedian --plugin my_rule.py

        robagg worst-case spectralfilter --f 6 --honest all
    """
    load_plugins(plugin)
    set_threads(threads)
    n = (11 if honest is None else 20) if n is None else n
    f = (n - 1) // 2 if f is None else f
    chain = parse(rule, f=f)
    if honest is not None:
        if tau != "both" or start != "both":
            raise ValueError("--honest must come without --tau and --start: it searches for positions alone")
        kinds = list(HONEST) if honest == "all" else [honest]
        placed = [_search_among(kind, chain, n, f, d or 40, budget or 10_000, seed, quiet=as_json) for kind in kinds]
        if as_json:
            typer.echo(json.dumps([one.to_dict() for one in placed], indent=2))
        else:
            _show_placed(placed)
        return
    d, budget = 2 if d is None else d, 200_000 if budget is None else budget
    found = []
    for radius, one in _choose(chain, tau, start):
        share = _ration(budget, one)
        with _follow(f"{radius} tau, from {one}", share, quiet=as_json) as watch:
            found.append(find_worst_case(chain, n, f, d, budget=share, seed=seed, tau=radius, start=one, watch=watch))
    if as_json:
        typer.echo(json.dumps([one.to_dict() for one in found], indent=2))
    else:
        _show(found)


def _search_among(kind: str, rule: Rule, n: int, f: int, d: int, budget: int, seed: int, *, quiet: bool) -> Placed:
    with _follow(kind, budget, quiet=quiet) as watch:
        return find_worst_positions(rule, kind, n, f, d, budget=budget, seed=seed, watch=watch)


@contextmanager
def _follow(title: str, budget: int, *, quiet: bool) -> Iterator[Watch]:
    """A bar with the worst ratio so far."""
    with Progress(console=Console(stderr=True), disable=quiet, transient=True) as progress:
        task = progress.add_task(title, total=budget)

        def watch(done: int, worst: float) -> None:
            progress.update(task, completed=done, description=f"{title}: {worst:.3g}")

        yield watch


def _show_placed(placed: list[Placed]) -> None:
    first = placed[0]
    console = Console()
    table = Table(title=f"{first.rule}: n = {first.n}, f = {first.f}, d = {first.d}")
    for name, side in (
        ("honest rows", "left"),
        ("worst ratio found", "right"),
        ("from", "left"),
        ("grows with", "left"),
    ):
        table.add_column(name, justify="right" if side == "right" else "left")
    for one in placed:
        grows = "" if one.grows is None else one.grows.along
        table.add_row(one.honest, f"{one.ratio:.3g}", one.family, grows)
    console.print(table)
    seconds = sum(one.seconds for one in placed)
    console.print(
        "The ratio is |R - honest mean|^2 over the honest variance. This is the worst found: a search proves nothing. "
        f"{sum(one.evaluations for one in placed):,} stacks, {seconds:.0f} s.",
        style="dim",
        highlight=False,
    )


def _choose(chain: Rule, tau: str, start: str) -> list[tuple[str, str]]:
    if not isinstance(chain, TQ | Huber):  # what is not asked for is not refused
        return [("estimated" if tau == "both" else tau, "median" if start == "both" else start)]
    taus = ("estimated", "true") if tau == "both" else (tau,)
    starts = ("median", "far") if start == "both" else (start,)
    return [(radius, one) for one in starts for radius in taus]


def _ration(budget: int, start: str) -> int:
    # A walk from far takes Theorem 3's number of steps, several times the usual ten.
    return max(1, budget // 4) if start == "far" else budget


def _show(found: list[WorstCase]) -> None:
    first = found[0]
    console = Console()
    table = Table(title=f"{first.rule}: n = {first.n}, f = {first.f}, d = {first.d}")
    known = bool(first.tau)
    for name in ("tau", "start") if known else ():
        table.add_column(name)
    table.add_column("worst ratio found", justify="right")
    table.add_column("the paper's kappa", justify="right")
    table.add_column("verdict")
    for one in found:
        bound = "none" if one.bound is None else f"{one.bound:.4g}"
        table.add_row(*((one.tau, one.start) if known else ()), f"{one.ratio:.4g}", bound, one.verdict)
    console.print(table)
    for one in found:
        name = f"tau {one.tau}, start {one.start}" if known else "the worst stack"
        console.print(f"{name}: {one.describe()}", highlight=False)
        if (growth := one.unbounded) is not None:
            steps = ", ".join(f"{10**k:,}x: {ratio:.3g}" for k, ratio in enumerate(growth.ratios))
            console.print(f"  ratio with {growth.along}: {steps}", highlight=False)
    total = sum(one.evaluations for one in found)
    seconds = sum(one.seconds for one in found)
    console.print(
        "Lengths are in roots of the honest variance. "
        "This is the worst found: a search proves nothing, and a worse stack may exist. "
        f"{total:,} stacks, {seconds:.0f} s.",
        style="dim",
        highlight=False,
    )
