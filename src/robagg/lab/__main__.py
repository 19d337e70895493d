"""`python -m robagg.lab FILE.toml`: `robagg sweep` with torch and numpy alone."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from robagg.lab.command_line import Screen, run_command
from robagg.lab.console import format_estimate, format_summary
from robagg.lab.estimation import estimate
from robagg.lab.options import Options
from robagg.lab.sweep_file import read_sweep
from robagg.lab.sweeps import sweep as run_sweep


def sweep(
    screen: Screen,
    file: Annotated[Path, "the sweep, in TOML: lists are axes"],
    store: Annotated[Path | None, "where records go; default: runs/NAME.jsonl"] = None,
    workers: Annotated[int, "runs at the same time, also on one GPU"] = 1,
    threads: Annotated[int, "threads of each run; results are equal at equal threads"] = 1,
    device: Annotated[str, "auto, cpu, cuda, or several: cuda:0,cuda:1"] = "auto",
    data: Annotated[Path | None, "folder of the data; default $ROBAGG_DATA, or a cache"] = None,
    plugin: Annotated[list[Path] | None, "a Python file with rules, attacks, tasks, ... of your own"] = None,
    ray: Annotated[str | None, "run on Ray: an address, or local"] = None,
    retry: Annotated[bool, "do runs that failed before again"] = True,
    dry_run: Annotated[bool, "only print how many runs, and how long here"] = False,
) -> int:
    """Do the runs of a sweep file that the store has no result of. Ctrl-C stops; the same command goes on.

    Examples:

        robagg sweep examples/sweeps/digits.toml --workers 2

        robagg sweep examples/sweeps/table3.toml --dry-run

        robagg sweep mine.toml --plugin my_rule.py --ray local
    """
    planned = read_sweep(file, plugins=plugin or [], store=store)
    options = Options(device, None if data is None else str(data), threads, workers, planned.plugins, address=ray)
    for note in planned.notes:
        screen.say(f"note: {note}")
    if dry_run:
        with screen.wait("timing a few rounds"):
            known = estimate(planned.runs, planned.store, options, retry=retry)
        screen.say("\n".join(format_estimate(known)))
        return 0
    summary = run_sweep(
        planned.runs,
        planned.store,
        executor="ray" if ray else "auto",
        options=options,
        watcher=screen.watch(planned.store),
        retry=retry,
    )
    screen.say("\n".join([*format_summary(summary), f"records are in {planned.store}; robagg show makes the tables"]))
    return summary.status


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(sweep, arguments, "python -m robagg.lab")


if __name__ == "__main__":
    sys.exit(main())
