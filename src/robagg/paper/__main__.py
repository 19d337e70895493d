"""`python -m robagg.paper NAME`: `robagg paper` with torch and numpy alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from robagg.lab.command_line import Screen, run_command
from robagg.lab.console import format_estimate, format_summary
from robagg.lab.options import Options
from robagg.paper.board import Board, gather
from robagg.paper.catalogue import NAMES, describe, find
from robagg.paper.claim import Finding
from robagg.paper.compare import compare, measure_rows, summarise
from robagg.paper.experiment import Plan, place_store
from robagg.paper.figures import draw_board, draw_computed
from robagg.paper.latex import write_latex
from robagg.paper.only import Only
from robagg.paper.page import tell_notes, write_computed, write_page
from robagg.paper.perform import foresee, perform
from robagg.paper.sheets import divide, head_of, name_column, tell_beside, tell_counts
from robagg.paper.walk import Computation


def paper(
    screen: Screen,
    name: Annotated[str, f"list, or one of {', '.join(NAMES)}"],
    seeds: Annotated[int | None, "how many; default: the experiment's"] = None,
    rounds: Annotated[int | None, "rounds of training; default: the paper's"] = None,
    only: Annotated[str | None, "a part of it: rule=TQ,attack=IPM,f=6"] = None,
    device: Annotated[str, "auto, cpu, cuda, or several: cuda:0,cuda:1"] = "auto",
    workers: Annotated[int | None, "runs at the same time; default 1, quick: one a core"] = None,
    threads: Annotated[int, "threads of each run; results are equal at equal threads"] = 1,
    quick: Annotated[bool, "a look at it on digits, in two minutes on two cores"] = False,
    dry_run: Annotated[bool, "only print how many runs, and how long here"] = False,
    no_run: Annotated[bool, "only show what the store has"] = False,
    store: Annotated[Path | None, "default: results/paper/NAME.jsonl, or runs/paper/"] = None,
    out: Annotated[Path | None, "folder for Markdown, LaTeX and figures; default: none are written"] = None,
    data: Annotated[Path | None, "folder of the data; default $ROBAGG_DATA, or a cache"] = None,
    sigmas: Annotated[str, "candidates, for mca-sigma: 0.1,0.3,1"] = "",
) -> int:
    """Do an experiment of the paper and show it beside the paper's numbers. Ctrl-C stops; the same command goes on.

    Examples:

        robagg paper list

        robagg paper table3 --quick

        robagg paper fig3 --only rule=TQ,rule=CM --device cuda --workers 4

        robagg paper table3 --no-run --out page
    """
    if name == "list":
        lines = [[listed, find(listed).title, describe(find(listed))] for listed in NAMES]
        screen.table("", ["name", "what", "how much"], lines)
        return 0
    experiment = find(name, sigmas=[float(value) for value in filter(None, sigmas.split(","))])
    if isinstance(experiment, Computation):
        given = {"seeds": seeds, "rounds": rounds, "only": only, "no-run": no_run or None, "store": store}
        if unused := [f"--{option}" for option, value in given.items() if value is not None]:
            raise ValueError(f"{experiment.name} trains nothing: leave out {', '.join(unused)}")
        if dry_run:
            screen.say(experiment.tell_dry())
        else:
            show_computed(screen, experiment, quick, out)
        return 0
    if quick and device not in ("auto", "cpu"):
        raise ValueError(f"a quick look runs on the CPU; got --device {device}")
    plan = Plan(seeds, rounds, Only.parse(only), quick)
    place = place_store(experiment.name, quick=quick, given=store)
    workers = workers or ((os.cpu_count() or 1) if quick else 1)
    options = Options("cpu" if quick else device, None if data is None else str(data), threads, workers)
    if dry_run:
        screen.say("\n".join(format_estimate(foresee(experiment, plan, place, options, say=screen.say))))
        return 0
    summary = None
    if not no_run:
        summary = perform(experiment, plan, place, options, watcher=screen.watch(place), say=screen.say)
        screen.say("\n".join(format_summary(summary)))
    board = gather(experiment, plan, place)
    if not board.cells:
        raise FileNotFoundError(f"there are no runs of {experiment.name} in {place}")
    show_board(screen, board)
    if out is not None:
        write_board(screen, board, out)
    return 0 if summary is None else summary.status


def show_board(screen: Screen, board: Board) -> None:
    """Tables, the comparison and the orderings."""
    pairs = compare(board)
    screen.say(f"\n{board.experiment.name}: {board.title}".replace(" [", "\n["), "bold")  # a mark has its own line
    screen.say(tell_counts(board) + (" The paper's means are in brackets." if pairs else ""))
    for sheet in divide(board):
        title = ", ".join(filter(None, [sheet.title, name_column(board, sheet)]))
        screen.table(title, head_of(board, sheet), tell_beside(board, sheet, digits=1, gap=screen.gap))
    if board.experiment.candidates:
        for row, distance in measure_rows(pairs).items():
            screen.say(f"{row}: {distance:.2f} points from the paper's row on average")
    for sentence in summarise(pairs):
        screen.say(sentence)
    show_findings(screen, board.check_claims())
    for note in tell_notes(board):
        screen.say(f"note: {note}")


def show_computed(screen: Screen, computation: Computation, quick: bool, out: Path | None) -> None:
    """Compute what needs no training, and show it."""
    draws = computation.quick_draws if quick else computation.draws
    done = computation.compute(draws)
    mark = f" [QUICK LOOK, {draws} draws]" if quick and computation.draws > 1 else ""
    screen.table(computation.title + mark, done.head, done.lines)
    show_findings(screen, done.findings)
    if out is not None:
        name = f"{computation.name}{'.quick' if quick else ''}"
        pictures = draw_computed(name, computation.title + mark, done.picture, out)
        page = write_computed(computation, done, mark, [path.name for path in pictures if path.suffix == ".png"])
        write_texts(screen, {out / f"{name}.md": page}, pictures)


def show_findings(screen: Screen, findings: list[Finding]) -> None:
    for found in findings:
        screen.say(f"{found}", {True: "green", False: "red", None: "dim"}[found.holds])


def write_board(screen: Screen, board: Board, folder: Path) -> None:
    """The page, the LaTeX table and the figure of an experiment."""
    pictures = draw_board(board, folder)
    page = write_page(board, [path.name for path in pictures if path.suffix == ".png"])
    texts = {folder / f"{board.name}.md": page, folder / f"{board.name}.tex": write_latex(board)}
    write_texts(screen, texts, pictures)


def write_texts(screen: Screen, texts: dict[Path, str], pictures: Sequence[Path]) -> None:
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    screen.say("written: " + ", ".join(str(path) for path in (*texts, *pictures)))


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(paper, arguments, "python -m robagg.paper")


if __name__ == "__main__":
    sys.exit(main())
