"""A sweep: what is not yet in the store is done, and every record is written as soon as it is there."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from robagg.lab import checkpoint
from robagg.lab.executors import Executor
from robagg.lab.executors.here import run_here
from robagg.lab.executors.pool import run_pool
from robagg.lab.lines import Record
from robagg.lab.options import Options
from robagg.lab.run import Run
from robagg.lab.store import Store, find_settled
from robagg.lab.watcher import Watcher
from robagg.training import choose_device


@dataclass
class Summary:
    """What a sweep came to.

    Args:
        total: runs in the sweep.
        before: runs that were in the store already.
        ran: runs that were done now.
        failed: records of those that failed.
        diverged: records of those that diverged.
        notes: what the watcher was given to say.
        seconds: how long it took.
        stopped: by Ctrl-C; the same sweep again goes on from there.
    """

    total: int
    before: int
    ran: int = 0
    failed: list[Record] = field(default_factory=list)
    diverged: list[Record] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    stopped: bool = False

    @property
    def status(self) -> int:
        """The exit status of a command that did it."""
        return 130 if self.stopped else int(bool(self.failed))

    def __str__(self) -> str:
        left = self.total - self.before - self.ran
        parts = [f"{self.ran} done in {format_time(self.seconds)}", f"{self.before} were there already"]
        counts = {"left": left, "failed": len(self.failed), "diverged": len(self.diverged)}
        parts += [f"{count} {word}" for word, count in counts.items() if count]
        return f"{self.total} runs: {', '.join(parts)}"


def sweep(
    runs: Sequence[Run],
    store: str | Path,
    *,
    executor: str | Executor = "auto",
    options: Options | None = None,
    watcher: Watcher | None = None,
    retry: bool = True,
) -> Summary:
    """Do those of the runs that the store has no result of, and add theirs to it.

    Args:
        runs: what is wanted, as `grid` makes it.
        store: the file the records go to.
        executor: "here" (this process), "pool", "ray"; "auto" is a pool for more than one worker, or a function.
        options: device, workers, threads, plugins and so on.
        watcher: follows it.
        retry: whether runs that failed before are done again.

    Example:
        >>> import tempfile
        >>> from robagg.lab import grid, load
        >>> runs = grid(rules=["tq", "cm"], attacks="ipm", f=4, settings={"rounds": 3})
        >>> store = Path(tempfile.mkdtemp()) / "runs.jsonl"
        >>> options = Options(device="cpu")
        >>> sweep(runs, store, options=options).ran, sweep(runs, store, options=options).ran
        (2, 0)
        >>> sorted(record["method"] for record in load(store))
        ['cm', 'tq']
    """
    options, watcher, path = options or Options(), watcher or Watcher(), Path(store)
    if options.checkpoints is None:
        options = replace(options, checkpoints=str(path.with_name(path.name + ".checkpoints").absolute()))
    unique = list({run.key: run for run in runs}.values())
    options = options.cover(unique)
    begin = time.perf_counter()
    with Store(path) as opened:
        settled = find_settled(opened.records, retry=retry)
        todo = [run for run in unique if run.key not in settled]
        summary = Summary(len(unique), len(unique) - len(todo))
        places = {run.key: place for place, run in enumerate(unique)}
        writer = _Writer(opened, watcher, summary, options, places)
        for note in opened.notes:
            writer.say(note)
        if len(unique) < len(runs):
            writer.say(f"{len(runs) - len(unique)} runs are the same as others and are done once")
        earlier = dict(opened.records)
        try:
            watcher.begin(unique, todo)
            if todo:
                _choose(executor, options)(todo, options, writer)
        except KeyboardInterrupt:
            summary.stopped = True
        finally:
            watcher.end()
        # Counted in the store, since Ctrl-C may come between writing and counting.
        fresh = [r for run in todo if (r := opened.records.get(run.key)) is not None and r is not earlier.get(run.key)]
        summary.ran = len(fresh)
        summary.failed = [record for record in fresh if record["status"] != "ok"]
        summary.diverged = [r for r in fresh if r["status"] == "ok" and r["diverged"] is not None]
        summary.seconds = time.perf_counter() - begin
    return summary


def format_time(seconds: float) -> str:
    """A duration in the unit people would use.

    >>> format_time(0.42), format_time(75), format_time(5400), format_time(200000)
    ('0.4 s', '75 s', '1.5 h', '2.3 days')
    """
    for unit, size, until in (("s", 1, 100), ("min", 60, 6000), ("h", 3600, 172800)):
        if seconds < until and not (unit == "min" and seconds >= 5400):
            return f"{seconds / size:.{0 if seconds / size >= 10 else 1}f} {unit}"
    return f"{seconds / 86400:.1f} days"


class _Writer(Watcher):
    """Puts each record into the store, and each sentence into the summary, before the sweep's own watcher has them."""

    def __init__(
        self, store: Store, watcher: Watcher, summary: Summary, options: Options, places: Mapping[str, int]
    ) -> None:
        self.store, self.watcher, self.summary, self.places = store, watcher, summary, places
        self.checkpoints = Path(options.checkpoints or "")

    def start(self, run: Run) -> None:
        self.watcher.start(run)

    def progress(self, run: Run, done: int, rounds: int, accuracy: float | None) -> None:
        self.watcher.progress(run, done, rounds, accuracy)

    def say(self, text: str) -> None:
        self.summary.notes.append(text)
        self.watcher.say(text)

    def finish(self, run: Run, record: Record) -> None:
        record["place"] = self.places[run.key]  # runs end in any order, and tables have the sweep's
        self.store.append(record)
        checkpoint.clean(self.checkpoints, run.key)
        self.watcher.finish(run, record)


def _choose(executor: str | Executor, options: Options) -> Executor:
    if not isinstance(executor, str):
        return executor
    if executor != "ray":
        for device in options.devices:
            choose_device(device)
    if executor == "auto":
        executor = "here" if options.workers == 1 else "pool"
    if executor != "pool" and len(options.devices) > 1:
        raise ValueError(
            f"several devices need a pool of workers, got executor={executor!r} and device={options.device!r}"
        )
    if executor == "ray":
        from robagg.lab.executors.ray import run_ray  # its extra may not be installed

        return run_ray
    known: dict[str, Executor] = {"here": run_here, "pool": run_pool}
    if executor not in known:
        raise ValueError(f"executor must be auto, here, pool, ray or a function, got {executor!r}")
    return known[executor]
