"""All commands in one place, and how errors and Ctrl-C look."""

from __future__ import annotations

import sys

import typer
from rich.console import Console
from rich.text import Text

from robagg import __version__
from robagg.cli.aggregate import aggregate
from robagg.cli.catalogue import list_names
from robagg.cli.check import check
from robagg.cli.data import data_app
from robagg.cli.demo import demo
from robagg.cli.doctor import doctor
from robagg.cli.playground import playground
from robagg.cli.plot import plot
from robagg.cli.replay import replay
from robagg.cli.report import report
from robagg.cli.run import run
from robagg.cli.screen import adapt
from robagg.cli.show import show
from robagg.cli.verify import verify
from robagg.cli.watch import watch
from robagg.cli.worst_case import worst_case
from robagg.lab.__main__ import sweep
from robagg.lab.command_line import FAULTS
from robagg.paper.__main__ import paper
from robagg.profile.__main__ import profile

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Robust aggregation for federated learning: rules that a minority of clients cannot drag away.",
)
app.command()(demo)
app.command()(run)
app.command("sweep")(adapt(sweep))
app.command()(show)
app.command()(check)
app.command()(aggregate)
app.command()(verify)
app.command()(replay)
app.command()(watch)
app.command("worst-case")(worst_case)
app.command("profile")(adapt(profile))
app.command("paper")(adapt(paper))
app.command()(plot)
app.command()(report)
app.command()(playground)
app.command("list")(list_names)
app.command()(doctor)
app.add_typer(data_app, name="data")


@app.callback(invoke_without_command=True)
def show_version(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    """Robust aggregation for federated learning: rules that a minority of clients cannot drag away."""
    if version:
        typer.echo(f"robagg {__version__}")
        raise typer.Exit


def run_app() -> None:
    """Run a command; what the user got wrong is one sentence, not a traceback."""
    try:
        app(standalone_mode=True)
    except KeyboardInterrupt:
        Console(stderr=True).print("stopped")
        sys.exit(130)
    except FAULTS as error:
        # A Text, since brackets in what a user typed are no markup.
        Console(stderr=True).print(Text.assemble(("error:", "bold red"), f" {error}"), soft_wrap=True)
        sys.exit(2)
