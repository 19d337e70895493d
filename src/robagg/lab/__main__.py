"""`python -m robagg.lab FILE.toml --store PATH`: a sweep with torch and numpy alone."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from robagg.lab.console import LineWatcher, format_estimate, format_summary
from robagg.lab.estimation import estimate
from robagg.lab.lock import StoreBusyError
from robagg.lab.options import Options
from robagg.lab.sweep_file import read_sweep
from robagg.lab.sweeps import sweep


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m robagg.lab", description="Do the runs of a sweep file.")
    parser.add_argument("file", help="the sweep, in TOML")
    parser.add_argument("--store", help="where records go (default: runs/NAME.jsonl)")
    parser.add_argument("--workers", type=int, default=1, help="runs at the same time")
    parser.add_argument("--threads", type=int, default=1, help="threads of each run")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, or several: cuda:0,cuda:1")
    parser.add_argument("--data", help="folder of the data sets")
    parser.add_argument("--plugin", action="append", default=[], help="a Python file with rules, attacks, tasks, ...")
    parser.add_argument("--ray", nargs="?", const="local", metavar="ADDRESS", help="on Ray, local or at an address")
    parser.add_argument("--no-retry", action="store_true", help="leave runs that failed before as they are")
    parser.add_argument("--dry-run", action="store_true", help="only tell how many runs there are, and how long")
    given = parser.parse_args(arguments)
    try:
        wanted = read_sweep(given.file, plugins=given.plugin, store=given.store)
        options = Options(given.device, given.data, given.threads, given.workers, wanted.plugins, address=given.ray)
        for note in wanted.notes:
            print(f"note: {note}")
        if given.dry_run:
            print("\n".join(format_estimate(estimate(wanted.runs, wanted.store, options, retry=not given.no_retry))))
            return 0
        executor = "ray" if given.ray else "auto"
        summary = sweep(
            wanted.runs, wanted.store, executor=executor, options=options, watcher=LineWatcher(),
            retry=not given.no_retry,
        )  # fmt: skip
    except (ImportError, OSError, StoreBusyError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n".join([*format_summary(summary), f"records are in {wanted.store}"]))
    return 130 if summary.stopped else int(bool(summary.failed))


if __name__ == "__main__":
    sys.exit(main())
