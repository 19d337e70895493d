"""`--plugin`, which commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from robagg.lab.plugins import load_entry_points, load_plugin

PluginFiles = Annotated[
    list[Path] | None, typer.Option("--plugin", help="a Python file with rules, attacks, tasks, ... of your own")
]


def load_plugins(files: list[Path] | None) -> None:
    """Load what installed packages offer, and the files."""
    load_entry_points()
    for file in files or []:
        load_plugin(file)
