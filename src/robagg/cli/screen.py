"""A command of the lab or of the paper as typer reads its options and rich prints what it says."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from robagg.cli.live import LiveWatcher
from robagg.cli.waiting import wait
from robagg.lab.command_line import Command, Option, Screen, list_options
from robagg.lab.watcher import Watcher

WIDTH = 110
"""Columns, where the output is no terminal."""


class RichScreen(Screen):
    """Prints with colours and drawn tables, and draws runs as they go on where there is a terminal."""

    gap = "\n"

    def __init__(self) -> None:
        console = Console(highlight=False)
        self.console = console if console.is_terminal else Console(highlight=False, width=WIDTH)

    def say(self, text: str, style: str = "") -> None:
        self.console.print(text, style=style, markup=False, soft_wrap=True)

    def table(self, title: str, head: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
        drawn = Table(
            title=escape(title) or None, box=None, padding=(0, 1, 0, 0), title_justify="left", title_style="bold"
        )
        for k, column in enumerate(head):
            numbers = k > 0 and all(re.match(r"[*\d.+-]|diverged", line[k]) for line in lines)
            drawn.add_column(escape(column), justify="right" if numbers else "left", no_wrap=numbers)
        for line in lines:
            drawn.add_row(*(re.sub(r"\*\*(.+?)\*\*", r"[bold]\1[/]", escape(text)) for text in line))
        self.console.print(drawn)
        self.console.print()

    def wait(self, text: str) -> AbstractContextManager[None]:
        return wait(text)

    def watch(self, store: Path) -> Watcher:
        return LiveWatcher(self.console, store) if self.console.is_terminal else super().watch(store)


def adapt(command: Command) -> Callable[..., None]:
    """The command as typer takes it: the same options, their help and defaults."""

    def run(**given: Any) -> None:
        if status := command(RichScreen(), **given):
            raise typer.Exit(status)

    run.__doc__ = command.__doc__
    vars(run)["__signature__"] = inspect.Signature([_describe(option) for option in list_options(command)])
    return run


def _describe(option: Option) -> inspect.Parameter:
    flags = [option.flag] if option.default is False else []  # a switch has no "--no-" beside it
    how = typer.Argument(help=option.help) if option.required else typer.Option(*flags, help=option.help)
    annotation: Any = Annotated[(option.kind, how)]
    place = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(option.name, place, default=option.default, annotation=annotation)
