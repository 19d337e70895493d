"""`robagg check`: whether a store is sound: its lines, its records and their keys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robagg.cli.plugins import PluginFiles, load_plugins
from robagg.cli.waiting import wait
from robagg.lab.checking import check_store


def check(
    store: Annotated[Path, typer.Argument(help="a store of runs", exists=True)],
    plugin: PluginFiles = None,
) -> None:
    """Check each line of a store and compute the key of each record again; the exit code is 1 where something is wrong.

    Examples:

        robagg check runs/digits.jsonl

        robagg check runs/mine.jsonl --plugin my_rule.py
    """
    load_plugins(plugin)
    with wait(f"checking {store}"):
        result = check_store(store)
    for fault in result.faults:
        typer.echo(fault, err=True)
    for note in result.notes:
        typer.echo(note)
    typer.echo(str(result))
    if result.faults:
        raise typer.Exit(1)
