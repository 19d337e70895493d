"""What every executor shares: how runs are to be done, who is told about it, and a run done from its text."""

from __future__ import annotations

import dataclasses
import json
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robagg.lab.record import describe_failure, execute
from robagg.lab.run import Run
from robagg.lab.store import Record
from robagg.plugins import list_plugins, load_entry_points, load_plugin
from robagg.training.trainer import Progress


@dataclass(frozen=True)
class Options:
    """How runs are done; nothing here changes a result, but for threads and the device, which are recorded."""

    device: str = "auto"
    data: str | None = None
    threads: int = 1
    workers: int = 1
    plugins: tuple[str, ...] = ()
    checkpoints: str | None = None
    patience: float = 20.0
    address: str | None = None
    """Of a Ray cluster; None or "local": one started on this machine."""

    def __post_init__(self) -> None:
        for name in ("threads", "workers"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if len(self.devices) > self.workers:
            raise ValueError(f"each device needs a worker: got device={self.device!r} and workers={self.workers}")

    @property
    def devices(self) -> list[str]:
        """The devices that workers take in turn."""
        return [device.strip() for device in str(self.device).split(",")]


def add_plugins(options: Options, runs: Sequence[Run]) -> Options:
    """The same with the plugin files that the runs use, which other processes have to load as well."""
    used = {digest for run in runs for digest in run.plugins.values()}
    files = [plugin.source for plugin in list_plugins() if plugin.digest in used and Path(plugin.source).is_file()]
    return dataclasses.replace(options, plugins=tuple(dict.fromkeys((*options.plugins, *files))))


class Watcher:
    """Is told what happens; a subclass shows it."""

    def begin(self, runs: Sequence[Run], todo: Sequence[Run], notes: Sequence[str]) -> None:
        """All runs, those still to do, and what the store had to say."""

    def start(self, run: Run) -> None:
        """A worker has taken a run up."""

    def progress(self, run: Run, done: int, rounds: int, accuracy: float | None) -> None:
        """A run has done so many of its rounds."""

    def finish(self, run: Run, record: Record) -> None:
        """A run is over, and its record in the store."""

    def say(self, text: str) -> None:
        """Something that people should know."""


Executor = Callable[[Sequence[Run], Options, Watcher], None]


def prepare(options: Options) -> None:
    """Load what plugins define, in whatever process this is."""
    load_entry_points()
    for path in options.plugins:
        load_plugin(path)


def write_job(run: Run) -> str:
    """A run and its key as text, for another process."""
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


def write_options(options: Options) -> str:
    return json.dumps(dataclasses.asdict(options))


def read_options(text: str) -> Options:
    fields = json.loads(text)
    return Options(**fields | {"plugins": tuple(fields["plugins"])})


def run_here(runs: Sequence[Run], options: Options, watcher: Watcher) -> None:
    """Do the runs one after the other, in this process."""
    for run in runs:
        watcher.start(run)

        def tell(done: int, rounds: int, accuracy: float | None, run: Run = run) -> None:
            watcher.progress(run, done, rounds, accuracy)

        watcher.finish(run, do_job(write_job(run), options, tell))
