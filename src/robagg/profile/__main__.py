"""`python -m robagg.profile RULE...`: `robagg profile` with torch and numpy alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from robagg._core.rule import parse
from robagg.lab import Options, Store, estimate
from robagg.lab.command_line import Screen, run_command
from robagg.lab.console import format_estimate, format_summary
from robagg.lab.plugins import load_entry_points, load_plugin
from robagg.profile.families import PLAIN, QUICK_PLAIN, choose_families
from robagg.profile.figures import draw_families
from robagg.profile.gather import gather
from robagg.profile.plan import Profile, perform, place_store, propose
from robagg.profile.tables import NOTES, list_families, list_worst, write_page


def profile(
    screen: Screen,
    rules: Annotated[list[str], 'rules or chains, such as tq or "nnm >> tq"'],
    task: Annotated[str, "what is learnt: see `robagg list tasks`"] = "digits",
    n: Annotated[int, "clients; 0: the task's number"] = 0,
    f: Annotated[int, "how many of them are Byzantine; also the rules' f"] = 6,
    rho: Annotated[float, "heterogeneity of the paper's split, 0 to 1"] = 0.5,
    rounds: Annotated[int | None, "rounds of training; default: the task's"] = None,
    momentum: Annotated[float | None, "of the honest clients; default: the task's"] = None,
    rate: Annotated[float | None, "learning rate; default: the task's"] = None,
    seeds: Annotated[int | None, "how many; default 3, quick: 2"] = None,
    first_seed: Annotated[int, "strengths are searched on this one"] = 0,
    steps: Annotated[int | None, "how often a worst strength is looked for more closely; default 3, quick: 1"] = None,
    families: Annotated[str | None, "a part of them: alie,ipm-0.5,bf; default: all"] = None,
    plain: Annotated[bool, "attacks without a strength and the optimal attacker too"] = True,
    quick: Annotated[bool, "a look at it on digits, in two minutes on two cores"] = False,
    device: Annotated[str, "auto, cpu, cuda, or several: cuda:0,cuda:1"] = "auto",
    workers: Annotated[int | None, "runs at the same time; default 1, quick: one per core"] = None,
    threads: Annotated[int, "threads of each run; results are equal at equal threads"] = 1,
    dry_run: Annotated[bool, "only print how many runs come next, and how long here"] = False,
    no_run: Annotated[bool, "only show what the store has"] = False,
    store: Annotated[Path | None, "default: results/profile/TASK.jsonl, or runs/profile/"] = None,
    out: Annotated[Path | None, "folder for a page and one figure per family; default: none are written"] = None,
    data: Annotated[Path | None, "folder of the data; default $ROBAGG_DATA, or a cache"] = None,
    plugin: Annotated[list[Path] | None, "a Python file with rules, attacks, tasks, ... of your own"] = None,
) -> int:
    """Find the strengths at which attacks hurt rules most. Ctrl-C stops; the same command goes on.

    Examples:

        robagg profile tq krum --quick

        robagg profile tq "nnm >> tq" caf --task mnist --f 6 --rho 0.5 --device cuda --out profile

        robagg profile tq --families alie,ipm --seeds 5

        robagg profile spectralfilter --momentum 0.9

        robagg show runs/profile/digits.jsonl --columns alie.z
    """
    load_entry_points()
    for file in plugin or []:
        load_plugin(file)
    if quick and (task != "digits" or device not in ("auto", "cpu")):
        raise ValueError(f"a quick look must be at digits on the CPU, got --task {task} --device {device}")
    chosen = choose_families(families.split(",") if families else None, quick=quick and not families)
    given = {"rounds": rounds, "momentum": momentum, "rate": rate}
    asked = Profile(
        tuple(dict.fromkeys(rules)),
        task=task,
        n=n,
        f=f,
        rho=rho,
        seeds=tuple(range(first_seed, first_seed + (seeds or (2 if quick else 3)))),
        steps=(1 if quick else 3) if steps is None else steps,
        families=tuple(replace(family, strengths=family.strengths[::2]) for family in chosen) if quick else chosen,
        plain=((QUICK_PLAIN if quick else PLAIN) if plain else ("none",)),
        settings=tuple((name, value) for name, value in given.items() if value is not None),
    )
    for rule in asked.rules:
        parse(rule, f=f)
    place = place_store(task, quick=quick, given=store)
    workers = workers or ((os.cpu_count() or 1) if quick else 1)
    files = tuple(str(file.resolve()) for file in plugin or [])
    options = Options("cpu" if quick else device, None if data is None else str(data), threads, workers, files)
    if dry_run:
        with screen.wait("timing a few rounds"):
            known = estimate(propose(asked, Store(place).read().records), place, options)
        screen.say("\n".join(format_estimate(known)))
        screen.say("then the strengths near the worst, and the worst ones with the other seeds")
        return 0
    status = 0
    if not no_run:
        done = perform(asked, place, options, watch=lambda: screen.watch(place), say=screen.say)
        screen.say("\n".join(format_summary(done)))
        status = done.status
    show(screen, asked, place, out, quick=quick)
    return status


def show(screen: Screen, asked: Profile, place: Path, out: Path | None, *, quick: bool) -> None:
    """The tables of a profile; with a folder, its page and figures."""
    with screen.wait(f"reading {place}"):
        found = gather(asked, Store(place).read().records)
    if not found.points:
        raise FileNotFoundError(f"there are no runs of this profile in {place}")
    screen.say("")
    screen.table("worst accuracy by family, %", *list_families(found))
    screen.table("worst case by rule, %", *list_worst(found))
    for note in (*NOTES, f"records are in {place}; robagg show and robagg report read them"):
        screen.say(note)
    if out is not None:
        with screen.wait("drawing figures"):
            figures = draw_families(found, out)
        page = out / f"{place.stem}.md"
        page.write_text(write_page(found, [path.name for path in figures], quick=quick), encoding="utf-8")
        screen.say("written: " + ", ".join(map(str, (page, *figures))))


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(profile, arguments, "python -m robagg.profile")


if __name__ == "__main__":
    sys.exit(main())
