"""Commands that run with torch and numpy alone: their options stand in the signature, what they print goes to a screen.

`robagg sweep` and `python -m robagg.lab` are one function, and so are `robagg paper` and `python -m robagg.paper`: the
installed command reads its arguments by typer and prints by rich, the bare one takes what is here.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

from robagg._core.contract import PluginError
from robagg._core.tolerance import QuorumError
from robagg.lab.console import LineWatcher, align
from robagg.lab.store import StoreBusyError
from robagg.lab.watcher import Watcher

FAULTS = (ImportError, OSError, PluginError, QuorumError, StoreBusyError, TypeError, ValueError)
"""What a user may get wrong, and reads about in one sentence."""

Command = Callable[..., int]
"""Takes a screen, then its options by name; gives the exit status."""


class Screen:
    """Where a command prints: plain lines of text."""

    gap = " "
    """Between two values of one cell."""

    def say(self, text: str, style: str = "") -> None:
        print(text, flush=True)

    def table(self, title: str, head: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
        """Texts under a head; the first column is names, the others are values."""
        self.say(align(title, head, lines) + "\n")

    def wait(self, text: str) -> AbstractContextManager[None]:
        """A sign of life while something goes on that has no steps to count."""
        return nullcontext()

    def watch(self, store: Path) -> Watcher:
        """What follows the runs whose records go to the store."""
        return LineWatcher(self.say)


@dataclass(frozen=True)
class Option:
    """One parameter of a command: `Annotated[type, help]`; one without a default is an argument by its place."""

    name: str
    kind: Any
    help: str
    default: Any

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")


def list_options(command: Command) -> list[Option]:
    """The options of a command, all its parameters but the screen.

    Example:
        >>> from robagg.lab.__main__ import sweep
        >>> [option.flag for option in list_options(sweep)][:3]
        ['--file', '--store', '--workers']
    """
    _, *parameters = inspect.signature(command, eval_str=True).parameters.values()
    described = [(p, get_args(p.annotation)) for p in parameters]
    return [Option(p.name, kind, text, p.default) for p, (kind, text) in described]


def read_arguments(command: Command, arguments: Sequence[str] | None, prog: str) -> dict[str, Any]:
    """Read the options of a command by argparse."""
    parser = argparse.ArgumentParser(prog=prog, description=(command.__doc__ or "").partition("\n")[0])
    for option in list_options(command):
        several = get_origin(next(iter(get_args(option.kind)), None)) is list
        kind = next((one for one in (Path, int, float) if one in get_args(option.kind) or one is option.kind), str)
        if option.required:
            many = "+" if get_origin(option.kind) is list else None
            parser.add_argument(option.name, type=kind, nargs=many, help=option.help)
        elif option.kind is bool:
            action: Any = argparse.BooleanOptionalAction if option.default else "store_true"
            parser.add_argument(option.flag, action=action, default=option.default, help=option.help)
        elif several:
            parser.add_argument(option.flag, action="append", type=Path, help=option.help)
        else:
            parser.add_argument(option.flag, type=kind, default=option.default, help=option.help)
    return vars(parser.parse_args(arguments))


def run_command(command: Command, arguments: Sequence[str] | None, prog: str) -> int:
    """Run a command on the plain screen; what the user got wrong is one sentence."""
    given = read_arguments(command, arguments, prog)
    try:
        return command(Screen(), **given)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except FAULTS as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
