"""`robagg plot`: a figure from a store of runs."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from robagg.cli.plugins import PluginFiles, load_plugins
from robagg.cli.waiting import wait
from robagg.lab.loading import flatten, read_runs
from robagg.report import plots
from robagg.report.measures import take_detection


def plot(
    store: Annotated[Path, typer.Argument(help="a store of runs", dir_okay=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="a PDF, PNG or SVG")] = Path("figure.pdf"),
    x: Annotated[str, typer.Option("--x", help="round, f, rho, n, a setting, alie.z, ...")] = "round",
    y: Annotated[str, typer.Option("--y", help="accuracy, or another measure: precision, recall, ...")] = "accuracy",
    lines: Annotated[str, typer.Option(help="what has a line or a row: method, attack, ...")] = "method",
    heatmap: Annotated[bool, typer.Option("--heatmap", help="cells with numbers, such as rules by attacks")] = False,
    worst: Annotated[bool, typer.Option("--worst", help="the worst case over all attacks")] = False,
    width: Annotated[float, typer.Option(help="of a panel, in inches")] = 3.4,
    plugin: PluginFiles = None,
) -> None:
    """Draw a measure over rounds, f, rho or the strength of an attack, with bands; or rules by attacks as a heat map.

    Examples:

        robagg plot runs/table3.jsonl -o curves.pdf

        robagg plot runs/fig3.jsonl --x f --worst -o breakdown.pdf

        robagg plot runs/fig3.jsonl --x f --y recall -o recall.pdf

        robagg plot runs/profile/digits.jsonl --x minmax.scale -o strength.svg

        robagg plot runs/table3.jsonl --x attack --heatmap -o table.png
    """
    load_plugins(plugin)
    without = ("trace",) if x == "round" else ("trace", "curve")
    with wait(f"reading {store}"):
        contents = read_runs(store, without=without, look=None if y == "accuracy" else take_detection)
    for note in contents.notes:
        typer.echo(note, err=True)
    records = [flatten(record) for record in contents.records.values()]
    with wait(f"drawing {output}"), warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always", UserWarning)
        path = plots.plot(records, output, x=x, y=y, lines=lines, heatmap=heatmap, worst=worst, width=width)
    for said in notes:
        typer.echo(f"{said.message}", err=True)
    typer.echo(f"{path}")
