"""`robagg show`: tables from a store of runs, or from the journal of a server."""

from __future__ import annotations

import csv
import io
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from robagg.cli.plugins import PluginFiles, load_plugins
from robagg.cli.waiting import wait
from robagg.lab.loading import flatten, read_runs
from robagg.report.formats import render, render_rows
from robagg.report.measures import take_detection
from robagg.report.page.build import tell_kind
from robagg.report.rounds import describe_rounds, summarise_clients
from robagg.report.tables import list_troubles, tabulate
from robagg.server import read_journal


class Format(StrEnum):
    """What tables can be printed as."""

    terminal = "terminal"
    markdown = "markdown"
    latex = "latex"
    csv = "csv"


def show(
    store: Annotated[Path, typer.Argument(help="a store, or a journal that a server wrote", dir_okay=False)],
    form: Annotated[Format, typer.Option("--format", help="how tables are printed")] = Format.terminal,
    rows: Annotated[str, typer.Option(help="what has a row: method, mixers, f, rho, ...")] = "method",
    columns: Annotated[str, typer.Option(help="what has a column: attack, f, rho, a setting, alie.z, ...")] = "attack",
    measure: Annotated[
        list[str] | None,
        typer.Option(help="accuracy, worst_client, attack_success, precision, recall, ...; several: again"),
    ] = None,
    worst: Annotated[bool | None, typer.Option(help="a column with the worst case; default: over attacks")] = None,
    digits: Annotated[int, typer.Option(help="digits behind the point", min=0, max=6)] = 2,
    interval: Annotated[
        bool, typer.Option("--interval", help="the 95 % interval of the mean behind it, in place of the deviation")
    ] = False,
    plugin: PluginFiles = None,
    tracebacks: Annotated[bool, typer.Option("--tracebacks", help="print those of runs that failed")] = False,
) -> None:
    """Show what a sweep gave: mean and deviation over seeds, the worst case, and what failed or diverged.

    Precision and recall are those of the verdicts: how many of the clients that a rule left out were Byzantine, and how
    many of the Byzantine ones it left out.

    Examples:

        robagg show runs/digits.jsonl

        robagg show runs/table3.jsonl --format latex

        robagg show runs/fig3.jsonl --columns f

        robagg show runs/profile/digits.jsonl --columns minmax.scale

        robagg show runs/table3.jsonl --columns measure --interval
    """
    load_plugins(plugin)
    if tell_kind(store) == "journal":
        with wait(f"reading {store}"):
            journal = read_journal(store)
        _note(f"{journal.strange} lines that are no round were skipped" if journal.strange else "")
        typer.echo(_show_clients(describe_rounds(journal.rounds), summarise_clients(journal.rounds), form.value))
        return
    look = take_detection if measure or "measure" in (rows, columns) else None
    with wait(f"reading {store}"):
        contents = read_runs(store, without=("trace", "curve"), look=look)
    for note in contents.notes:
        _note(note)
    records = [flatten(record) for record in contents.records.values()]
    if not records:
        _note(f"{store} has no runs of this version")
        return
    tables = tabulate(records, rows=rows, columns=columns, measures=measure or ())
    typer.echo(render(tables, form.value, worst=worst, digits=digits, interval=interval))
    for trouble in list_troubles(records):
        _note(trouble)
    if tracebacks:
        for record in records:
            if record["status"] != "ok":
                _note(record.get("traceback", ""))


def _note(text: str) -> None:
    """Beside the tables, so that those can go into a file."""
    if text:
        typer.echo(text, err=True)


def _show_clients(title: str, clients: list[dict[str, object]], form: str) -> str:
    head = list(clients[0]) if clients else ["client"]
    lines = [[str(value) for value in client.values()] for client in clients]
    if form != "csv":
        return render_rows(title, head, lines, form)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *lines])
    return text.getvalue().rstrip()
