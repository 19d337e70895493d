"""`robagg playground`: a page to try the rules in, with points to drag."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robagg.report import write_playground


def playground(
    output: Annotated[Path, typer.Option("--output", "-o", help="where the page goes")] = Path("playground.html"),
) -> None:
    """Write a page to try the rules in: drag honest and Byzantine points in the plane and see where each rule lands.

    The page is one file and needs no network.

    Example:

        robagg playground -o playground.html
    """
    if not output.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {output.parent} to write {output.name} to")
    output.write_text(write_playground(), encoding="utf-8")
    typer.echo(f"{output}: open it in a browser")
