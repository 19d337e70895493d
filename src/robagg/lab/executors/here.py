"""Runs one after the other, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from robagg.lab.executors.job import do_job, write_job
from robagg.lab.options import Options
from robagg.lab.run import Run
from robagg.lab.watcher import Watcher


def run_here(runs: Sequence[Run], options: Options, watcher: Watcher) -> None:
    """Do the runs one after the other, in this process."""
    for run in runs:
        watcher.start(run)
        watcher.finish(run, do_job(write_job(run), options, partial(watcher.progress, run)))
