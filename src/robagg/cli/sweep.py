"""`robagg sweep`: all runs of a small file, stopped and taken up again as you like."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from robagg.cli.plugins import PluginFiles
from robagg.lab import Options, Run, Watcher, estimate, read_sweep
from robagg.lab import sweep as run_sweep
from robagg.lab.console import LineWatcher, format_estimate, format_outcome, format_summary
from robagg.lab.loading import flatten
from robagg.lab.store import Record, Store
from robagg.report.tables import tabulate

REDRAW = 0.25
"""Seconds between two drawings of the table."""


def sweep(
    file: Annotated[Path, typer.Argument(help="the sweep, in TOML: lists are axes")],
    store: Annotated[Path | None, typer.Option(help="where records go; default: runs/NAME.jsonl")] = None,
    workers: Annotated[int, typer.Option(help="runs at the same time, also on one GPU")] = 1,
    threads: Annotated[int, typer.Option(help="threads of each run; results are equal at equal threads")] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, or several: cuda:0,cuda:1")] = "auto",
    data: Annotated[Path | None, typer.Option(help="folder of the data; default $ROBAGG_DATA, or a cache")] = None,
    plugin: PluginFiles = None,
    ray: Annotated[str | None, typer.Option(help="run on Ray: an address, or local")] = None,
    retry: Annotated[bool, typer.Option(help="do runs that failed before again")] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only tell how many runs, and how long here")] = False,
) -> None:
    """Do the runs of a sweep file that the store has no result of. Ctrl-C stops; the same command goes on.

    Examples:

        robagg sweep examples/sweeps/digits.toml --workers 2

        robagg sweep examples/sweeps/table3.toml --dry-run

        robagg sweep mine.toml --plugin my_rule.py --ray local
    """
    console = Console(highlight=False)
    wanted = read_sweep(file, plugins=plugin or [], store=store)
    options = Options(device, None if data is None else str(data), threads, workers, wanted.plugins, address=ray)
    for note in wanted.notes:
        console.print(f"note: {note}", markup=False)
    if dry_run:
        for line in format_estimate(estimate(wanted.runs, wanted.store, options, retry=retry)):
            console.print(line, markup=False, soft_wrap=True)
        return
    watcher = LiveWatcher(console, wanted.store) if console.is_terminal else LineWatcher(typer.echo)
    summary = run_sweep(
        wanted.runs,
        wanted.store,
        executor="ray" if ray else "auto",
        options=options,
        watcher=watcher,
        retry=retry,
    )
    for line in [*format_summary(summary), f"robagg show {wanted.store} makes the tables"]:
        console.print(line, markup=False, soft_wrap=True)
    if summary.stopped or summary.failed:
        raise typer.Exit(130 if summary.stopped else 1)


class LiveWatcher(Watcher):
    """A table of means that fills, the runs being done, and how far all of it is."""

    def __init__(self, console: Console, store: Path) -> None:
        self.console, self.store = console, store
        self.rows: list[Record] = []
        self.last: Record | None = None
        self.busy: dict[str, str] = {}
        self.drawn = 0.0
        columns = (
            TextColumn("runs"),
            MofNCompleteColumn(),
            BarColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
        )
        self.bar = Progress(*columns, console=console)
        self.live = Live(console=console, auto_refresh=False)

    def begin(self, runs: Sequence[Run], todo: Sequence[Run]) -> None:
        wanted = {run.key for run in runs}
        records = Store(self.store).read().records
        self.rows = [flatten(record) for key, record in records.items() if key in wanted and record["status"] == "ok"]
        self.task = self.bar.add_task("", total=len(runs), completed=len(runs) - len(todo))
        self.live.start()

    def start(self, run: Run) -> None:
        self.busy[run.key] = f"{run}"
        self.draw()

    def progress(self, run: Run, done: int, rounds: int, accuracy: float | None) -> None:
        shown = "" if accuracy is None else f", {accuracy:.2f} %"
        self.busy[run.key] = f"{run}: round {done} of {rounds}{shown}"
        self.draw()

    def finish(self, run: Run, record: Record) -> None:
        self.busy.pop(run.key, None)
        self.rows.append(flatten(record))
        self.last = self.rows[-1]
        self.bar.advance(self.task)
        if record["status"] != "ok":
            self.say(f"{run}: {format_outcome(record)}")
        self.draw(force=True)

    def say(self, text: str) -> None:
        self.console.print(f"note: {text}", markup=False)

    def end(self) -> None:
        if self.live.is_started:
            self.busy.clear()
            self.draw(force=True)
            self.live.stop()

    def draw(self, force: bool = False) -> None:
        now = time.monotonic()
        if force or now - self.drawn > REDRAW:
            self.drawn = now
            busy = [Text(text, style="dim", no_wrap=True, overflow="ellipsis") for text in self.busy.values()]
            table = self._tabulate()
            self.live.update(Group(*([table] if table is not None else []), *busy, self.bar), refresh=True)

    def _tabulate(self) -> Group | None:
        """The table that the last run belongs to."""
        if self.last is None:
            return None
        place = (self.last["method"], self.last["attack"])
        mine = {name: value for name, value in self.last.items() if name in ("task", "split", "n", "f")}
        for table in tabulate(self.rows):
            if place in table.cells and mine.items() <= dict(table.group).items():
                drawn = Table("", *map(str, table.columns), box=None)
                for row in table.rows:
                    cells = [table.cells.get((row, column)) for column in table.columns]
                    means = ["" if c is None else "-" if c.mean is None else f"{c.mean:.2f}" for c in cells]
                    drawn.add_row(str(row), *means)
                return Group(Text(table.title, style="bold"), drawn)
        return None
