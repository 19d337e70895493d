"""`robagg paper NAME`: an experiment of the paper, run where need be and shown beside the paper's numbers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from robagg.cli.sweep import LiveWatcher
from robagg.lab import Options, Watcher
from robagg.lab.console import LineWatcher, format_estimate, format_summary
from robagg.lab.sweeps import Summary
from robagg.paper import NAMES, Computation, Experiment, Only, Plan, describe, find, place_store
from robagg.paper.board import Board, gather
from robagg.paper.claim import Finding
from robagg.paper.compare import compare, measure_rows, summarise
from robagg.paper.figures import draw_board, draw_computed
from robagg.paper.latex import write_latex
from robagg.paper.page import tell_notes, write_computed, write_page
from robagg.paper.perform import foresee, perform
from robagg.paper.sheets import divide, head_of, name_column, tell_beside, tell_counts

WIDTH = 110
"""Columns, where the output is no terminal."""


def paper(
    name: Annotated[str, typer.Argument(help=f"list, or one of {', '.join(NAMES)}")],
    seeds: Annotated[int | None, typer.Option(help="how many; default: the experiment's")] = None,
    rounds: Annotated[int | None, typer.Option(help="rounds of training; default: the paper's")] = None,
    only: Annotated[str | None, typer.Option(help="a part of it: rule=TQ,attack=IPM,f=6")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, or several: cuda:0,cuda:1")] = "auto",
    workers: Annotated[int | None, typer.Option(help="runs at the same time; default 1, quick: one a core")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="a look at it on digits, in two minutes on two cores")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only tell how many runs, and how long here")] = False,
    no_run: Annotated[bool, typer.Option("--no-run", help="only show what the store has")] = False,
    store: Annotated[Path | None, typer.Option(help="default: results/paper/NAME.jsonl, or runs/paper/")] = None,
    out: Annotated[Path, typer.Option(help="folder for Markdown, LaTeX and figures")] = Path("runs/paper"),
    data: Annotated[Path | None, typer.Option(help="folder of the data; default $ROBAGG_DATA, or a cache")] = None,
    sigmas: Annotated[str, typer.Option(help="candidates, for mca-sigma: 0.1,0.3,1")] = "",
) -> None:
    """Do an experiment of the paper and show it beside the paper's numbers. Ctrl-C stops; the same command goes on.

    Examples:

        robagg paper list

        robagg paper table3 --quick

        robagg paper fig3 --only rule=TQ,rule=CM --device cuda --workers 4

        robagg paper table3 --no-run --out page
    """
    console = Console(highlight=False)
    console = console if console.is_terminal else Console(highlight=False, width=WIDTH)
    if name == "list":
        _list(console)
        return
    experiment = find(name, sigmas=[float(value) for value in filter(None, sigmas.split(","))])
    if isinstance(experiment, Computation):
        _refuse(experiment, {"seeds": seeds, "rounds": rounds, "only": only, "no-run": no_run or None, "store": store})
        if dry_run:
            console.print(experiment.tell_dry())
        else:
            _show_computed(console, experiment, out, quick)
        return
    if quick and device not in ("auto", "cpu"):
        raise ValueError(f"a quick look runs on the CPU; got --device {device}")
    plan = Plan(seeds, rounds, Only.parse(only), quick)
    place = place_store(experiment.name, quick=quick, given=store)
    hands = workers or ((os.cpu_count() or 1) if quick else 1)
    options = Options("cpu" if quick else device, None if data is None else str(data), workers=hands)
    if dry_run:
        for line in format_estimate(foresee(experiment, plan, place, options, say=typer.echo)):
            console.print(line, markup=False, soft_wrap=True)
        return
    summary = None if no_run else _perform(console, experiment, plan, place, options)
    board = gather(experiment, plan, place)
    if not board.cells:
        raise FileNotFoundError(f"there are no runs of {experiment.name} in {place}")
    show_board(console, board)
    _write(console, board, out)
    if summary is not None and (summary.stopped or summary.failed):
        raise typer.Exit(130 if summary.stopped else 1)


def show_board(console: Console, board: Board) -> None:
    """Tables, the comparison and the orderings, in the terminal."""
    title = f"\n{board.experiment.name}: {board.title}".replace(" [", "\n[")  # a mark has a line of its own
    console.print(title, style="bold", markup=False, soft_wrap=True)
    console.print(tell_counts(board) + (" The paper's means are in brackets." if compare(board) else ""))
    for sheet in divide(board):
        title = ", ".join(filter(None, [sheet.title, name_column(board, sheet)]))
        table = Table(title=_plain(title), box=None, padding=(0, 1, 0, 0), title_justify="left", title_style="bold")
        for k, column in enumerate(head_of(board, sheet)):
            table.add_column(_plain(column), justify="left" if k == 0 else "right", no_wrap=True)
        for line in tell_beside(board, sheet, digits=1, gap="\n", bold=""):
            best = sheet.panel is not None and board.by_attack and line[0] in board.find_best_worst(sheet.panel)
            table.add_row(*map(_plain, line[:-1]), f"[bold]{line[-1]}[/]" if best else line[-1])
        console.print(table)
        console.print()
    if board.experiment.candidates:
        for row, distance in measure_rows(compare(board)).items():
            console.print(f"{row}: {distance:.2f} points from the paper's row on average", markup=False)
    for sentence in summarise(compare(board)):
        console.print(sentence, markup=False, soft_wrap=True)
    _tell_findings(console, board.check_claims())
    for note in tell_notes(board):
        console.print(f"note: {note}", markup=False, soft_wrap=True)


def _perform(console: Console, experiment: Experiment, plan: Plan, store: Path, options: Options) -> Summary:
    watcher: Watcher = LiveWatcher(console, store) if console.is_terminal else LineWatcher(typer.echo)
    summary = perform(experiment, plan, store, options, watcher=watcher, say=typer.echo)
    for line in format_summary(summary):
        console.print(line, markup=False, soft_wrap=True)
    return summary


def _write(console: Console, board: Board, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pictures = draw_board(board, folder)
    page, latex = folder / f"{board.name}.md", folder / f"{board.name}.tex"
    page.write_text(write_page(board, [path.name for path in pictures if path.suffix == ".png"]), encoding="utf-8")
    latex.write_text(write_latex(board), encoding="utf-8")
    _tell_files(console, [page, latex, *pictures])


def _refuse(computation: Computation, options: dict[str, object]) -> None:
    given = [f"--{name}" for name, value in options.items() if value is not None]
    if given:
        raise ValueError(f"{computation.name} trains nothing: leave out {', '.join(given)}")


def _show_computed(console: Console, computation: Computation, folder: Path, quick: bool) -> None:
    draws = computation.quick_draws if quick else computation.draws
    done = computation.compute(draws)
    mark = f" [QUICK LOOK, {draws} draws]" if quick and computation.draws > 1 else ""
    name = f"{computation.name}{'.quick' if quick else ''}"
    table = Table(title=_plain(computation.title + mark), box=None, padding=(0, 2, 0, 0), title_justify="left")
    for k, column in enumerate(done.head):
        table.add_column(column, justify="left" if k == 0 else "right")
    for line in done.lines:
        table.add_row(*line)
    console.print(table)
    _tell_findings(console, done.findings)
    pictures = draw_computed(name, computation.title + mark, done.picture, folder)
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / f"{name}.md"
    shown = [path.name for path in pictures if path.suffix == ".png"]
    page.write_text(write_computed(computation, done, mark, shown), encoding="utf-8")
    _tell_files(console, [page, *pictures])


def _list(console: Console) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("name", "what", "how much"):
        table.add_column(column)
    for name in NAMES:
        table.add_row(name, find(name).title, describe(find(name)))
    console.print(table)


def _tell_findings(console: Console, findings: list[Finding]) -> None:
    for found in findings:
        style = {True: "green", False: "red", None: "dim"}[found.holds]
        console.print(f"{found}", style=style, markup=False, soft_wrap=True)


def _tell_files(console: Console, paths: list[Path]) -> None:
    console.print("written: " + ", ".join(str(path) for path in paths), markup=False, soft_wrap=True)


def _plain(text: str) -> str:
    """Without brackets that the console would read as markup."""
    return text.replace("[", "\\[")
