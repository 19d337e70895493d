"""`robagg report`: one page about a store of runs, or about the journal of a server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robagg.cli.plugins import PluginFiles, load_plugins
from robagg.cli.waiting import wait
from robagg.report.page import write_report


def report(
    store: Annotated[Path, typer.Argument(help="a store of runs, or a journal that a server wrote", dir_okay=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="the file to write")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="the page's title; default: the file's name")] = None,
    labels: Annotated[bool, typer.Option(help="of a store: count each client's labels, which loads data sets")] = True,
    data: Annotated[Path | None, typer.Option(help="folder of the data; default $ROBAGG_DATA, or a cache")] = None,
    plugin: PluginFiles = None,
) -> None:
    """Write a page about a store or a journal: one file that opens in any browser, without a network.

    Examples:

        robagg report runs/digits.jsonl

        robagg report runs/table3.jsonl -o table3.html --title "Table 3"

        robagg report rounds.jsonl -o rounds.html
    """
    load_plugins(plugin)
    with wait(f"writing {output}"):
        path = write_report(store, output, title=title, data=data, labels=labels)
    typer.echo(f"{path} ({path.stat().st_size / 1e6:.1f} MB): open it in a browser")
