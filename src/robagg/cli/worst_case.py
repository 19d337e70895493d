"""`robagg worst-case RULE`: the worst stack found, beside what the theorems promise."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from robagg._core.rule import Rule, parse
from robagg.cli.plugins import PluginFiles, load_plugins
from robagg.rules import TQ, Huber
from robagg.worst_case import WorstCase, find_worst_case


def worst_case(
    rule: Annotated[str, typer.Argument(help="A rule or a pipeline, such as tq, krum or 'nnm >> tq'.")],
    n: Annotated[int, typer.Option(help="Rows.")] = 11,
    f: Annotated[int | None, typer.Option(help="Byzantine rows among them; default: the most that n allows.")] = None,
    d: Annotated[int, typer.Option(help="Length of a row.")] = 2,
    budget: Annotated[int, typer.Option(help="Stacks to look at; from far starts a quarter of it.")] = 200_000,
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    tau: Annotated[str, typer.Option(help="estimated, true (from the honest rows), or both.")] = "both",
    start: Annotated[str, typer.Option(help="median, far (the search chooses it), or both.")] = "both",
    plugin: PluginFiles = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with the stacks.")] = False,
) -> None:
    """Search for the stack that moves a rule farthest from the honest mean, and show the paper's bound beside it.

    TQ and Huber are searched with the estimated and the true tau, from the median and from far starts.

    Examples:

        robagg worst-case tq --n 11 --f 5

        robagg worst-case nearmedian --plugin my_rule.py
    """
    load_plugins(plugin)
    f = (n - 1) // 2 if f is None else f
    chain = parse(rule, f=f)
    found = [
        find_worst_case(chain, n, f, d, budget=_ration(budget, one), seed=seed, tau=radius, start=one)
        for radius, one in _choose(chain, tau, start)
    ]
    if as_json:
        typer.echo(json.dumps([one.to_dict() for one in found], indent=2))
    else:
        _show(found)


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
