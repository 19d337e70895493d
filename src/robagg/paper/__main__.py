"""`python -m robagg.paper NAME --store PATH`: the runs of an experiment, with torch and numpy alone."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from robagg.lab.console import LineWatcher, format_estimate, format_summary
from robagg.lab.lock import StoreBusyError
from robagg.lab.options import Options
from robagg.paper.catalogue import NAMES, describe, find
from robagg.paper.experiment import Plan, place_store
from robagg.paper.only import Only
from robagg.paper.perform import foresee, perform
from robagg.paper.walk import Computation


def main(arguments: Sequence[str] | None = None) -> int:
    given = _read(arguments)
    try:
        if given.name == "list":
            for name in NAMES:
                print(f"{name:<10} {find(name).title} ({describe(find(name))})")
            return 0
        sigmas = [float(value) for value in filter(None, given.sigmas.split(","))]
        experiment = find(given.name, sigmas=sigmas)
        if isinstance(experiment, Computation):
            if given.dry_run:
                print(experiment.tell_dry())
                return 0
            done = experiment.compute(experiment.quick_draws if given.quick else experiment.draws)
            print("\n".join("  ".join(line) for line in [list(done.head), *done.lines]))
            print("\n".join(map(str, done.findings)))
            return 0
        plan = Plan(given.seeds, given.rounds, Only.parse(given.only), given.quick)
        store = place_store(experiment.name, quick=given.quick, given=given.store)
        options = Options(given.device, given.data, given.threads, given.workers)
        if given.dry_run:
            print("\n".join(format_estimate(foresee(experiment, plan, store, options))))
            return 0
        summary = perform(experiment, plan, store, options, watcher=LineWatcher())
    except (ImportError, OSError, StoreBusyError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n".join([*format_summary(summary), f"records are in {store}"]))
    return 130 if summary.stopped else int(bool(summary.failed))


def _read(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m robagg.paper", description="Do an experiment of the paper.")
    parser.add_argument("name", help=f"list, or one of {', '.join(NAMES)}")
    parser.add_argument("--store", help="where records go (default: results/paper or runs/paper)")
    parser.add_argument("--seeds", type=int, help="how many (default: the experiment's)")
    parser.add_argument("--rounds", type=int, help="rounds of training (default: the paper's)")
    parser.add_argument("--only", help="a part of it: rule=TQ,attack=IPM,f=6")
    parser.add_argument("--quick", action="store_true", help="a look at it on digits, in two minutes")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, or several: cuda:0,cuda:1")
    parser.add_argument("--workers", type=int, default=1, help="runs at the same time")
    parser.add_argument("--threads", type=int, default=1, help="threads of each run")
    parser.add_argument("--data", help="folder of the data sets")
    parser.add_argument("--dry-run", action="store_true", help="only tell how many runs there are, and how long")
    parser.add_argument("--sigmas", default="", help="candidates, for mca-sigma: 0.1,0.3,1")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
