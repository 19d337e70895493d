"""Runs on a Ray cluster: one that an address leads to, or one started on this machine (extra: `robagg[ray]`).

Every machine needs robagg, the data and, at the same path, the plugins; a run whose key comes out differently there
fails and says so.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from robagg.lab.execution import describe_failure
from robagg.lab.executors.job import do_job, prepare, write_job
from robagg.lab.lines import Record
from robagg.lab.options import Options
from robagg.lab.run import Run
from robagg.lab.watcher import Watcher


def run_ray(runs: Sequence[Run], options: Options, watcher: Watcher) -> None:
    """Do the runs on Ray; with "local" or no address, `options.workers` at once on this machine."""
    ray = _import_ray()
    ours = not ray.is_initialized()
    if ours:
        quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
        if options.address in (None, "local"):
            ray.init(address="local", num_cpus=options.workers * options.threads, **quiet)
        else:
            ray.init(address=options.address, log_to_driver=False, logging_level="ERROR")
    try:
        # By name, since a function sent by value would be pickled code; a worker that dies is given its run once more.
        remote: Any = ray.remote(_answer)
        needs: dict[str, Any] = {"num_cpus": options.threads, "max_retries": 1}
        if options.device.startswith("cuda"):
            needs["num_gpus"] = 1 / options.workers
        sent = options.to_json()
        pending = {remote.options(**needs).remote(write_job(run), sent): run for run in runs}
        try:
            while pending:
                done, _ = ray.wait(list(pending), num_returns=1, timeout=1)
                for reference in done:
                    run = pending.pop(reference)
                    try:
                        record = ray.get(reference)
                    except Exception as error:  # the worker died, twice, or its machine went away
                        record = describe_failure(run.describe(), run.key, f"{type(error).__name__}: {error}")
                    watcher.finish(run, record)
        finally:
            for reference in pending:
                ray.cancel(reference, force=True)
    finally:
        if ours:
            ray.shutdown()


def _answer(job: str, text: str) -> Record:
    """The worker's side."""
    options = Options.from_json(text)
    prepare(options)
    return do_job(job, options)


def _import_ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("Ray is not installed; pip install 'robagg[ray]' brings it") from error
