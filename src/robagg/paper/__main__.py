"""`python -m robagg.paper NAME`: `robagg paper` with torch and numpy alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from robagg.lab.command_line import Screen, run_command
from robagg.lab.console import format_estimate, format_summary
from robagg.lab.options import Options
from robagg.paper.board import Board, gather
from robagg.paper.claims import Finding
from robagg.paper.compare import compare, summarise
from robagg.paper.experiment import Computation, Experiment, Plan, place_store
from robagg.paper.experiments import EXPERIMENTS, find
from robagg.paper.figures import draw_board, draw_computed
from robagg.paper.latex import write_latex
from robagg.paper.only import Only
from robagg.paper.pages import count_runs, divide, list_notes, write_beside, write_computed, write_page
from robagg.paper.perform import foresee, perform


def paper(
    screen: Screen,
    name: Annotated[str, f"list, or one of {', '.join(EXPERIMENTS)}"],
    seeds: Annotated[int | None, "how many; default: the experiment's"] = None,
    rounds: Annotated[int | None, "rounds of training; default: the paper's"] = None,
    only: Annotated[str | None, "a part of it: rule=TQ,attack=IPM,f=6"] = None,
    device: Annotated[str, "auto, cpu, cuda, or several: cuda:0,cuda:1"] = "auto",
    workers: Annotated[int | None, "runs at the same time; default 1, quick: one per core"] = None,
    threads: Annotated[int, "threads of each run; results are equal at equal threads"] = 1,
    quick: Annotated[bool, "a look at it on digits, in two minutes on two cores"] = False,
    dry_run: Annotated[bool, "only print how many runs, and how long here"] = False,
    no_run: Annotated[bool, "only show what the store has"] = False,
    store: Annotated[Path | None, "default: results/paper/NAME.jsonl, or runs/paper/"] = None,
    out: Annotated[Path | None, "folder for Markdown, LaTeX and figures; default: none are written"] = None,
    data: Annotated[Path | None, "folder of the data; default $ROBAGG_DATA, or a cache"] = None,
) -> int:
    """Do an experiment of the paper and show it beside the paper's numbers. Ctrl-C stops; the same command goes on.

    Examples:

        robagg paper list

        robagg paper table3 --quick

        robagg paper fig3 --only rule=TQ,rule=CM --device cuda --workers 4

        robagg paper table3 --no-run --out page
    """
    if name == "list":
        lines = [[listed, found.title, describe(found)] for listed, found in EXPERIMENTS.items()]
        screen.table("", ["name", "what", "how much"], lines)
        return 0
    experiment = find(name)
    if isinstance(experiment, Computation):
        given = {"seeds": seeds, "rounds": rounds, "only": only, "no-run": no_run or None, "store": store}
        if unused := [f"--{option}" for option, value in given.items() if value is not None]:
            raise ValueError(f"{experiment.name} trains nothing: leave out {', '.join(unused)}")
        if dry_run:
            screen.say(f"no runs: {experiment.name} trains nothing and is computed each time, in seconds")
        else:
            show_computed(screen, experiment, quick, out)
        return 0
    if quick and device not in ("auto", "cpu"):
        raise ValueError(f"--device must be auto or cpu for a quick look, got {device}")
    plan = Plan(seeds, rounds, Only.parse(only), quick)
    place = place_store(experiment.name, quick=quick, given=store)
    workers = workers or ((os.cpu_count() or 1) if quick else 1)
    options = Options("cpu" if quick else device, None if data is None else str(data), threads, workers)
    if dry_run:
        notes: list[str] = []
        with screen.wait("timing a few rounds"):
            known = foresee(experiment, plan, place, options, say=notes.append)
        screen.say("\n".join([*notes, *format_estimate(known)]))
        return 0
    summary = None
    if not no_run:
        summary = perform(experiment, plan, place, options, watcher=screen.watch(place), say=screen.say)
        screen.say("\n".join(format_summary(summary)))
    with screen.wait(f"reading {place}"):
        board = gather(experiment, plan, place)
    if not board.cells:
        raise FileNotFoundError(f"there are no runs of {experiment.name} in {place}")
    show_board(screen, board)
    if out is not None:
        with screen.wait("drawing figures"):
            pictures = draw_board(board, out)
        texts = {f"{board.name}.md": write_page(board, pictures), f"{board.name}.tex": write_latex(board)}
        write_texts(screen, out, texts, pictures)
    return 0 if summary is None else summary.status


def describe(experiment: Experiment | Computation) -> str:
    """A few words about how much it is."""
    if isinstance(experiment, Computation):
        return "no training"
    cells = sum(len(panel.rows) * len(panel.columns) for panel in experiment.panels)
    return f"{cells} cells, {experiment.seeds} seed{'s' * (experiment.seeds > 1)}"


def show_board(screen: Screen, board: Board) -> None:
    """Tables, the comparison and the orderings."""
    pairs = compare(board)
    screen.say(f"\n{board.experiment.name}: {board.title}".replace(" [", "\n["), "bold")  # a mark has its own line
    screen.say(count_runs(board) + (" The paper's means are in brackets." if pairs else ""))
    for sheet in divide(board):
        screen.table(sheet.caption, sheet.head, write_beside(board, sheet, digits=1, gap=screen.gap))
    for sentence in summarise(pairs):
        screen.say(sentence)
    show_findings(screen, board.check_claims())
    for note in list_notes(board):
        screen.say(f"note: {note}")


def show_computed(screen: Screen, computation: Computation, quick: bool, out: Path | None) -> None:
    """Compute what needs no training, and show it."""
    draws = computation.quick_draws if quick else computation.draws
    with screen.wait(f"computing {computation.name}"):
        done = computation.compute(draws)
    title = computation.title + (f" [QUICK LOOK, {draws} draws]" if quick and computation.draws > 1 else "")
    screen.table(title, done.head, done.lines)
    show_findings(screen, done.findings)
    if out is not None:
        name = f"{computation.name}{'.quick' if quick else ''}"
        pictures = draw_computed(name, title, done.picture, out)
        write_texts(screen, out, {f"{name}.md": write_computed(computation.name, title, done, pictures)}, pictures)


def show_findings(screen: Screen, findings: Sequence[Finding]) -> None:
    for found in findings:
        screen.say(f"{found}", {True: "green", False: "red", None: "dim"}[found.holds])


def write_texts(screen: Screen, folder: Path, texts: Mapping[str, str], pictures: Sequence[Path]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    screen.say("written: " + ", ".join(str(path) for path in (*(folder / name for name in texts), *pictures)))


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(paper, arguments, "python -m robagg.paper")


if __name__ == "__main__":
    sys.exit(main())
