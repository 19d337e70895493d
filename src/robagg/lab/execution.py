"""Does one run and writes down what came of it."""

from __future__ import annotations

import dataclasses
import json
import math
import platform
import re
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from robagg import kernels
from robagg._version import __version__
from robagg.data import Dataset
from robagg.lab.checkpoint import Checkpoint
from robagg.lab.lines import Record
from robagg.lab.run import RESULTS_VERSION, Run
from robagg.tasks.base import federate
from robagg.training import Federation, Loop, Result, Settings, Trace, choose_device
from robagg.training.metrics import Value
from robagg.training.trace import CURVES
from robagg.training.trainer import Progress

LIMIT = 12_000
"""The most bytes of a record beside its metrics, which are kept whole."""


def execute(
    run: Run,
    *,
    device: str = "auto",
    data: str | Path | None = None,
    progress: Progress | None = None,
    checkpoints: str | Path | None = None,
    threads: int = 1,
    patience: float = 20.0,
) -> Record:
    """Do a run; what comes of it, also where it fails, as values that JSON takes.

    Args:
        run: what to do.
        device: "auto", "cpu", "cuda".
        data: the folder of the data sets; None: $ROBAGG_DATA or the user's cache folder.
        progress: called after each round (rounds done, rounds in all, the last accuracy).
        checkpoints: a folder for the run's state, from which it is taken up if it was stopped; None: none is kept.
        threads: torch's threads for this run. Equal results are promised at equal threads.
        patience: seconds between two checkpoints, and before the first.

    Example:
        >>> record = execute(Run(rule="tq", attack="ipm", f=4, settings={"rounds": 5}), device="cpu")
        >>> record["status"], len(record["curve"]), record["environment"]["threads"]
        ('ok', 5, 1)
    """
    begin = time.perf_counter()
    environment: Record = {}
    try:
        with fix_threads(threads):
            chosen = choose_device(device)
            environment = describe_environment(chosen, threads)
            federation, dataset = assemble(run, chosen, data)
            metrics = run.parts.task.metrics
            loop = Loop(federation, (dataset.test_x, dataset.test_y), progress=progress, metrics=metrics)
            if checkpoints is None:
                result, before = loop.run(), 0.0
            else:
                kept = Checkpoint(Path(checkpoints), run.key, environment, loop, patience)
                result, before = loop.run(resume=kept.take_up()), kept.before
        seconds = round(time.perf_counter() - begin + before, 3)
        # Through JSON and back: what is handed on and what a store gives back are the same to the last bracket.
        return _as_read(fit(run, result, {"seconds": seconds, "environment": environment}))
    except Exception as error:
        failed = describe_failure(run.describe(), run.key, f"{type(error).__name__}: {error}", traceback.format_exc())
        seconds = round(time.perf_counter() - begin, 3)
        return failed | {"plugins": run.plugins, "seconds": seconds, "environment": environment}


def assemble(
    run: Run, device: torch.device, data: str | Path | None, settings: Settings | None = None
) -> tuple[Federation, Dataset]:
    """The federation and the data of a run; `settings` in place of its own."""
    return federate(
        *run.parts,
        n=run.n,
        f=run.f,
        seed=run.seed,
        settings=settings or run.effective,
        root=data,
        device=device,
    )


def describe_failure(spec: Mapping[str, Any], key: str, error: str, trace: str = "") -> Record:
    """The record of a run that failed."""
    head = _head(spec, key, "failed")
    trace = re.sub(r'(?<=File ")[^"]+(?=")', _shorten, trace)
    return head | {"error": error[-2000:], "traceback": trace[-6000:], "accuracy": None, "diverged": None}


def _shorten(file: re.Match[str]) -> str:
    """A file of a traceback by its place in its package, or by its name: stores are published, folders are private."""
    parts = Path(file[0]).parts
    for root, skip in (("site-packages", 1), ("robagg", 0)):
        if root in parts:
            return "/".join(parts[len(parts) - 1 - parts[::-1].index(root) + skip :])
    return parts[-1]


def describe_environment(device: torch.device, threads: int) -> Record:
    """Where a run is done: what may move its last digits, and nothing about whose machine it is."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        "robagg": __version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "device": str(device),
        "device_name": name,
        "threads": threads,
        "kernels": kernels.active(device),
    }


@contextmanager
def fix_threads(count: int) -> Iterator[None]:
    """Torch's threads are `count` inside."""
    if count < 1:
        raise ValueError(f"threads must be at least 1, got {count}")
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _head(spec: Mapping[str, Any], key: str, status: str) -> Record:
    # The version comes first: a line is known for a record by it.
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    return {"robagg": RESULTS_VERSION, "key": key, "status": status, "finished": finished, "spec": dict(spec)}


def fit(run: Run, result: Result, rest: Record) -> Record:
    """The record, with every second point of the trace, then of the curve, left out until it is small enough."""
    trace, curve, notes = result.trace, [(t, round(value, 4)) for t, value in result.curve], list(result.notes)
    while True:
        record = _head(run.describe(), run.key, "ok") | {
            "accuracy": result.accuracy,
            "diverged": result.diverged,
            "done": result.rounds,
            "curve": curve,
            "metrics": {name: store(value) for name, value in result.metrics.items()},
            "notes": notes,
            "plugins": run.plugins,
            "trace": trace.pack(),
        }
        counted = {name: value for name, value in (record | rest).items() if name != "metrics"}
        if len(json.dumps(counted)) <= LIMIT or run.effective.full_trace:
            return record | rest
        if len(trace.rounds) > 10:
            trace = _halve(trace)
        elif len(curve) > 10:
            curve = curve[-1::-2][::-1]
        else:
            return record | rest
        thinned = f"thinned to {len(trace.rounds)} points of the trace and {len(curve)} of the curve, for size"
        notes = [*result.notes, thinned]


def store(value: Value) -> Any:
    """A metric as JSON takes it: to six digits, null where it is not finite.

    >>> store([0.123456789, float("nan")])
    [0.123457, None]
    """
    if isinstance(value, list):
        return [store(part) for part in value]
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _as_read(record: Record) -> Record:
    plain: Record = json.loads(json.dumps(record, allow_nan=False))
    return plain


def _halve(trace: Trace) -> Trace:
    return dataclasses.replace(trace, **{name: getattr(trace, name)[-1::-2][::-1] for name in CURVES})
