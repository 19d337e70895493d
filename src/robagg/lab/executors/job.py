"""A run as text, for another process, and what that process does with it."""

from __future__ import annotations

import json
import traceback
from typing import Any

from robagg.lab.execution import describe_failure, execute
from robagg.lab.lines import Record
from robagg.lab.options import Options
from robagg.lab.plugins import load_entry_points, load_plugin
from robagg.lab.run import Run
from robagg.training.trainer import Progress


def prepare(options: Options) -> None:
    """Load what plugins define, in whatever process this is."""
    load_entry_points()
    for path in options.plugins:
        load_plugin(path)


def write_job(run: Run) -> str:
    """A run and its key as text."""
    return json.dumps({"run": run.describe(), "key": run.key})


def do_job(text: str, options: Options, progress: Progress | None = None) -> Record:
    """Do a run from its text. It must have the same key here, or it would not be the same run."""
    job: dict[str, Any] = json.loads(text)
    try:
        run = Run.from_json(job["run"])
        if run.key != job["key"]:
            raise RuntimeError(
                f"this worker has another version of robagg or of a plugin: it knows the run as {run.key}, "
                f"and was asked for {job['key']}; plugins here: {run.plugins or 'none'}"
            )
    except Exception as error:
        return describe_failure(job["run"], job["key"], f"{type(error).__name__}: {error}", traceback.format_exc())
    return execute(
        run,
        device=options.device,
        data=options.data,
        progress=progress,
        checkpoints=options.checkpoints,
        threads=options.threads,
        patience=options.patience,
    )
