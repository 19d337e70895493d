"""A sweep as it goes on, drawn in the terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from robagg.lab import Run, Watcher
from robagg.lab.console import format_outcome
from robagg.lab.lines import Record
from robagg.lab.loading import flatten
from robagg.lab.store import Store
from robagg.report.tables import tabulate

REDRAW = 0.25
"""Seconds between two drawings of the table."""


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
        keys = {run.key for run in runs}
        records = Store(self.store).read().records
        self.rows = [flatten(record) for key, record in records.items() if key in keys and record["status"] == "ok"]
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
        for table in tabulate(sorted(self.rows, key=lambda row: row.get("place") or 0)):
            if place in table.cells and mine.items() <= dict(table.group).items():
                drawn = Table("", *map(str, table.columns), box=None)
                for row in table.rows:
                    cells = [table.cells.get((row, column)) for column in table.columns]
                    means = ["" if c is None else "-" if c.mean is None else f"{c.mean:.2f}" for c in cells]
                    drawn.add_row(str(row), *means)
                return Group(Text(table.title, style="bold"), drawn)
        return None
