"""`robagg demo`: eight rules under four attacks on scikit-learn's digits, in about a minute."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from robagg.lab import Options, Run, Watcher, grid, sweep
from robagg.lab.store import Record
from robagg.report.curves import draw_curves

RULES = {
    "mean": "Mean",
    "rfa": "RFA",
    "tm": "TM",
    "cm": "CM",
    "krum": "Krum",
    "huber": "Huber",
    "mca": "MCA",
    "tq": "TQ",
}
ATTACKS = ("ipm", "bf", "alie", "lf")
N, F, RHO = 20, 6, 0.5


def demo(
    picture: Annotated[Path, typer.Option(help="where the picture of the accuracy curves goes")] = Path("demo.png"),
    rounds: Annotated[int, typer.Option(help="rounds of training")] = 400,
    workers: Annotated[int, typer.Option(help="processes at once; 0: one a core")] = 0,
    seed: Annotated[int, typer.Option()] = 0,
) -> None:
    """Train on digits with 20 clients of which 6 are Byzantine: seven robust rules and the mean against four attacks.

    Example:

        robagg demo --picture curves.png
    """
    console = Console()
    console.print(
        f"[bold]{N} clients learn handwritten digits together; {F} of them are Byzantine.[/] "
        f"Each row is a rule the server may use, each column an attack (rho={RHO}, {rounds} rounds, seed {seed}).\n",
        highlight=False,
    )
    picture.parent.mkdir(parents=True, exist_ok=True)  # fail before the work, not after it
    runs = grid(rules=list(RULES), attacks=list(ATTACKS), f=F, rho=RHO, seeds=seed, settings={"rounds": rounds})
    board = Board(console)
    with tempfile.TemporaryDirectory() as folder, Live(board.draw(), console=console, refresh_per_second=8) as live:
        board.live = live
        options = Options(device="cpu", workers=workers or os.cpu_count() or 1)
        summary = sweep(runs, Path(folder) / "demo.jsonl", options=options, watcher=board)
        live.update(board.draw(done=True))
    if summary.stopped:
        raise typer.Exit(130)
    for record in summary.failed:
        said = f"{record['spec']['rule']} against {record['spec']['attack']} failed: {record['error']}"
        console.print(said, style="red", markup=False)
    console.print(f"\n{board.conclude()}", highlight=False)
    curves = {
        attack: {RULES[name]: board.records[name, attack]["curve"] for name in RULES if (name, attack) in board.records}
        for attack in ATTACKS
    }
    draw_curves(curves, picture, title=f"digits, n={N}, f={F}, rho={RHO}", emphasise="TQ")
    console.print(
        f"Accuracy over the rounds: [bold]{escape(str(picture.resolve()))}[/] ({summary.seconds:.0f} s)",
        highlight=False,
    )


class Board(Watcher):
    """The table of results as they come in."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.records: dict[tuple[str, str], Record] = {}
        self.live: Live | None = None
        self.bar = Progress(
            TextColumn("runs"), MofNCompleteColumn(), BarColumn(), TimeRemainingColumn(), console=console
        )
        self.task = self.bar.add_task("", total=len(RULES) * len(ATTACKS))

    def finish(self, run: Run, record: Record) -> None:
        self.records[run.rule.split("(")[0], run.attack] = record
        self.bar.advance(self.task)
        if self.live is not None:
            self.live.update(self.draw())

    def accuracy(self, rule: str, attack: str) -> float | None:
        """What a run came to, 0 where it diverged; None while it is not there, or where it failed."""
        record = self.records.get((rule, attack), {})
        return record.get("accuracy") if record.get("diverged") is None else 0.0

    def worst(self, rule: str) -> float | None:
        """The least accuracy over all attacks; None while one is missing."""
        found = [self.accuracy(rule, attack) for attack in ATTACKS]
        known = [value for value in found if value is not None]
        return min(known) if len(known) == len(found) else None

    def draw(self, done: bool = False) -> Group:
        table = Table(box=None, padding=(0, 2))
        table.add_column("rule")
        for attack in ATTACKS:
            table.add_column(attack.upper(), justify="right")
        table.add_column("worst case", justify="right", style="bold")
        for name, title in RULES.items():
            cells = [_colour(self.accuracy(name, attack)) for attack in ATTACKS]
            table.add_row(title, *cells, _colour(self.worst(name)))
        return Group(table) if done else Group(table, self.bar)

    def conclude(self) -> str:
        """One sentence of what the table means."""
        worst = {title: self.worst(name) for name, title in RULES.items()}
        known = {title: value for title, value in worst.items() if value is not None}
        if len(known) < len(RULES):
            return "Some runs failed, so there is no worst case to compare."
        best = max(known, key=lambda title: known[title])
        return (
            f"An attacker picks the attack that hurts most, so the worst case counts: {best} keeps {known[best]:.1f}% "
            f"accuracy under every attack here, where the plain mean is left with {known['Mean']:.1f}%."
        )


def _colour(value: float | None) -> Text:
    if value is None:
        return Text("...", style="dim")
    return Text(f"{value:.1f}", style="green" if value >= 80 else "yellow" if value >= 50 else "red")
