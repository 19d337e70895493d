"""`robagg demo`: eight rules under four attacks on scikit-learn's digits, in about a minute."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from robagg.cli.screen import RichScreen
from robagg.lab import Options, grid, load, sweep
from robagg.report.curves import draw_curves
from robagg.report.tables import Table, tabulate

RULES = {
    "mean": "Mean",
    "tm": "TM",
    "cm": "CM",
    "krum": "Krum",
    "huber": "Huber",
    "mca": "MCA",
    "tq": "TQ",
    "scaledfilter": "ScaledFilter",
}
ATTACKS = ("ipm", "bf", "alie", "lf")
N, F, RHO = 20, 6, 0.5
MOMENTUM = 0.9
"""What the guides recommend; the task's own is the paper's 0.99, with which BF ends every rule here but TQ."""


def demo(
    picture: Annotated[Path, typer.Option(help="where the picture of the accuracy curves goes")] = Path("demo.png"),
    rounds: Annotated[int, typer.Option(help="rounds of training")] = 400,
    workers: Annotated[int, typer.Option(help="processes at once; 0: one per core")] = 0,
    threads: Annotated[int, typer.Option(help="threads of each run", min=1)] = 1,
    seed: Annotated[int, typer.Option()] = 0,
) -> None:
    """Train on digits with 20 clients of which 6 are Byzantine: seven robust rules and the mean against four attacks.

    Example:

        robagg demo --picture curves.png
    """
    screen = RichScreen()
    screen.say(
        f"{N} clients learn handwritten digits together; {F} of them are Byzantine. "
        f"Each row is a rule the server may use, each column an attack (rho={RHO}, {rounds} rounds, "
        f"momentum {MOMENTUM}, seed {seed}).\n"
    )
    picture.parent.mkdir(parents=True, exist_ok=True)  # fail before the work, not after it
    settings = {"rounds": rounds, "momentum": MOMENTUM}
    runs = grid(rules=list(RULES), attacks=list(ATTACKS), f=F, rho=RHO, seeds=seed, settings=settings)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "demo.jsonl"
        options = Options(device="cpu", workers=workers or os.cpu_count() or 1, threads=threads)
        summary = sweep(runs, store, options=options, watcher=screen.watch(store))
        records = load(store)
    if summary.stopped:
        raise typer.Exit(130)
    table = tabulate(records)[0]
    lines = [
        [title, *(_format(table, name, attack) for attack in ATTACKS), _format(table, name)]
        for name, title in RULES.items()
    ]
    screen.say("")
    screen.table("accuracy, %", ["rule", *map(str.upper, ATTACKS), "worst case"], lines)
    for record in summary.failed:
        screen.say(f"{record['spec']['rule']} against {record['spec']['attack']} failed: {record['error']}", "red")
    screen.say(conclude(table))
    done = {(record["method"], record["attack"]): record["curve"] for record in records if record["status"] == "ok"}
    curves = {
        attack: {title: done[name, attack] for name, title in RULES.items() if (name, attack) in done}
        for attack in ATTACKS
    }
    draw_curves(curves, picture, title=f"digits, n={N}, f={F}, rho={RHO}", emphasise="TQ")
    screen.say(f"Accuracy over the rounds: {picture.resolve()} ({summary.seconds:.0f} s)")


def conclude(table: Table) -> str:
    """One sentence of what the table means."""
    worst = {title: table.find_worst(name) for name, title in RULES.items()}
    known = {title: cell.mean for title, cell in worst.items() if cell is not None and cell.mean is not None}
    if len(known) < len(RULES) or any(cell.failed for cell in table.cells.values()):
        return "Some runs failed, so there is no worst case to compare."
    best = max(known, key=lambda title: known[title])
    return (
        f"An attacker picks the attack that hurts most, so the worst case counts: {best} keeps {known[best]:.1f}% "
        f"accuracy under every attack here, where the plain mean is left with {known['Mean']:.1f}%."
    )


def _format(table: Table, rule: str, attack: str | None = None) -> str:
    """The accuracy under an attack, or in the worst case; diverged runs count as 0."""
    cell = table.find_worst(rule) if attack is None else table.cells.get((rule, attack))
    return "-" if cell is None or cell.mean is None else f"{cell.mean:.1f}"
