"""`robagg watch`: a page in the browser that follows a run by its journal."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from robagg.report.watch import WatchServer


def watch(
    journal: Annotated[Path, typer.Argument(help="a journal that a server writes, or will write", dir_okay=False)],
    port: Annotated[int, typer.Option(help="where to listen; 0: any free port", min=0, max=65535)] = 8765,
    opened: Annotated[bool, typer.Option("--open", help="open the page in a browser")] = False,
) -> None:
    """Follow a run in the browser: who was believed in each round, why others were not, tau, distances, reputation.

    The page is served to this machine alone, until Ctrl-C. It asks for new rounds by itself.

    Examples:

        robagg watch rounds.jsonl

        robagg watch rounds.jsonl --port 0 --open
    """
    with WatchServer(journal, port) as server:
        typer.echo(f"{server.address} follows {journal}: open it in a browser; Ctrl-C ends it")
        if opened:
            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            typer.echo("stopped")
