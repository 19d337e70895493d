"""How long a sweep will take here: from what the store has of such runs, else by timing a few rounds of a few cells."""

from __future__ import annotations

import contextlib
import json
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from robagg._core.checks import is_number
from robagg.lab.execution import assemble, fix_threads
from robagg.lab.executors.job import write_job
from robagg.lab.executors.pool import run_pool
from robagg.lab.lines import Record
from robagg.lab.options import Options
from robagg.lab.run import Run
from robagg.lab.store import Store, find_settled
from robagg.lab.watcher import Watcher
from robagg.training import Federation, Loop, choose_device

PATIENCE = 3.0
"""Seconds for the rounds of one cell."""
MOST_ROUNDS = 60
MOST_CELLS = 8


class _Enough(Exception):  # noqa: N818 - no error
    """Enough rounds were timed."""


@dataclass
class Estimate:
    """How many runs are left, and how long they will take.

    Args:
        total: runs in the sweep.
        todo: runs that have no result yet.
        workers: how many at once.
        work: seconds for all of them, one after the other at the speed of `workers` at once; None: unknown.
        basis: what it was taken from, or why there is none.
    """

    total: int
    todo: int
    workers: int
    work: float | None = None
    basis: list[str] = field(default_factory=list)

    @property
    def seconds(self) -> float | None:
        """Seconds by the clock."""
        return None if self.work is None else self.work / max(1, min(self.workers, self.todo))


def estimate(runs: Sequence[Run], store: str | Path, options: Options, *, retry: bool = True) -> Estimate:
    """How long those of the runs would take that the store has no result of; `retry` as in `sweep`."""
    records, options = Store(store).read().records, options.cover(runs)
    keyed = {run.key: run for run in runs}
    settled = find_settled(records, retry=retry)
    todo = [run for key, run in keyed.items() if key not in settled]
    result = Estimate(len(keyed), len(todo), options.workers)
    if not todo:
        result.work = 0.0
        return result
    known = _average(records.values(), options)
    cells: dict[str, list[Run]] = {}
    for run in todo:
        cells.setdefault(_kind(run.describe()), []).append(run)
    stored = {kind: known[kind] for kind in cells if kind in known}
    if stored:
        result.basis.append(f"{len(stored)} of {len(cells)} cells from runs in the store")
    work = sum(seconds * len(cells[kind]) for kind, seconds in stored.items())
    rest = [members[0] for kind, members in cells.items() if kind not in stored]
    if rest:
        chosen = _choose(rest)
        measured = _measure(chosen, options)
        timed = [(run, measured[run.key]) for run in chosen if "error" not in measured[run.key]]
        times = [_predict(run, m) for run, m in timed]
        for error in dict.fromkeys(m["error"] for m in measured.values() if "error" in m):
            result.basis.append(f"could not be timed: {error}")
        if not times:
            return result
        rounds = [m["round"] for _, m in timed]
        result.basis.append(
            f"a few rounds of {len(times)} of {len(rest)} cells, {min(options.workers, len(chosen))} at a time: "
            f"{min(rounds):.3g} to {max(rounds):.3g} s a round"
        )
        count = sum(len(cells[_kind(run.describe())]) for run in rest)
        work += count * sum(times) / len(times)
        work += min(options.workers, count) * max(m["once"] for _, m in timed)
    result.work = work
    return result


def measure_job(text: str, options: Options) -> Record:
    """Time a few rounds of a run: seconds for a round, for an evaluation, and for everything before the first round."""
    try:
        return time_rounds(Run.from_json(json.loads(text)["run"]), options)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1].name
        return {"error": f"{error}" if isinstance(error, OSError) else f"{type(error).__name__} in {last}: {error}"}


def time_rounds(run: Run, options: Options) -> Record:
    """What `measure_job` measures, and what a process pays once: imports, the device, compiled kernels."""
    with fix_threads(options.threads):
        first, *_ = _time(run, options, rounds=1)
        setup, each, federation, test = _time(run, options, rounds=MOST_ROUNDS)
        before = time.perf_counter()
        federation.score((test[0].to(federation.device), test[1].to(federation.device)))
        evaluation = time.perf_counter() - before
    return {"round": each, "evaluation": evaluation, "setup": setup, "once": max(0.0, first - setup)}


def _time(run: Run, options: Options, rounds: int) -> tuple[float, float, Federation, tuple[Tensor, Tensor]]:
    """Seconds up to the end of the first round, and for each one after it; the federation and its test set."""
    begin, ticks = time.perf_counter(), list[float]()
    device = choose_device(options.device)
    # No evaluation among the timed rounds: its time is taken on its own.
    settings = replace(run.effective, rounds=max(run.effective.rounds, 4), evaluate_every=10**9)
    federation, dataset = assemble(run, device, options.data, settings)

    def tick(*_: object) -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        ticks.append(time.perf_counter())
        if len(ticks) >= rounds or (len(ticks) >= 3 and ticks[-1] - ticks[0] > PATIENCE):
            raise _Enough

    test = (dataset.test_x, dataset.test_y)
    with contextlib.suppress(_Enough):
        Loop(federation, test, progress=tick).run()
    return ticks[0] - begin, (ticks[-1] - ticks[0]) / max(1, len(ticks) - 1), federation, test


def _predict(run: Run, measured: dict[str, float]) -> float:
    rounds = run.effective.rounds
    evaluations = sum(run.effective.evaluates_at(t) for t in range(1, rounds + 1))
    return measured["setup"] + (rounds - 1) * measured["round"] + evaluations * measured["evaluation"]


def _measure(chosen: list[Run], options: Options) -> dict[str, Any]:
    """In the same pool as the sweep, so that workers are in each other's way as they will be."""
    measured: dict[str, Any] = {}

    class Keep(Watcher):
        def finish(self, run: Run, record: Record) -> None:
            measured[run.key] = record

    run_pool(chosen, options, Keep(), write=lambda run: json.dumps(json.loads(write_job(run)) | {"measure": True}))
    return measured


def _choose(cells: list[Run]) -> list[Run]:
    """A few cells in which rules, attacks and the other axes each take turns: along the diagonal of the grid.

    Each value of an axis is met about equally often, so the mean over these cells is that over all of them as far as
    the axes' costs add up.
    """
    axes: dict[str, list[Any]] = {}
    for run in cells:
        for name, value in run.describe().items():
            values = axes.setdefault(name, [])
            if value not in values:
                values.append(value)
    left = {json.dumps(run.describe(), sort_keys=True): run for run in cells}
    count = min(len(cells), MOST_CELLS, max(len(values) for values in axes.values()))
    chosen: list[Run] = []
    for k in range(count):
        wanted = {name: values[k % len(values)] for name, values in axes.items()}
        near = max(left, key=lambda text: sum(left[text].describe()[name] == wanted[name] for name in wanted))
        chosen.append(left.pop(near))
    return chosen


def _kind(spec: dict[str, Any]) -> str:
    """Runs that differ in their seed alone take equally long."""
    return json.dumps({name: value for name, value in spec.items() if name != "seed"}, sort_keys=True)


def _average(records: Any, options: Options) -> dict[str, float]:
    """Seconds a run by its kind, of those done on such a device with as many threads."""
    device = str(choose_device(options.device.split(",")[0])).split(":")[0]
    times: dict[str, list[float]] = {}
    for record in records:
        where = record.get("environment", {})
        alike = str(where.get("device", "")).split(":")[0] == device and where.get("threads") == options.threads
        whole = isinstance(record.get("spec"), dict) and is_number(record.get("seconds"))
        if record.get("status") == "ok" and record.get("diverged") is None and alike and whole:
            times.setdefault(_kind(record["spec"]), []).append(record["seconds"])
    return {kind: sum(values) / len(values) for kind, values in times.items()}
