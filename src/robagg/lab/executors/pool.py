"""Runs in several processes of this machine: on its cores, or several at once on one GPU.

Workers are started as programs of their own and get text, so nothing of this process is in them. One that is killed
takes its run alone with it: that is done once more by another, and recorded as failed if that one dies of it too.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from robagg.lab.execution import describe_failure
from robagg.lab.executors.job import write_job
from robagg.lab.options import Options
from robagg.lab.run import Run
from robagg.lab.watcher import Watcher

ATTEMPTS = 2
"""How many workers may die of a run before it counts as failed."""

Events = queue.SimpleQueue[tuple["Worker", dict[str, Any] | None]]


class Worker:
    """One process, and the run it is at."""

    def __init__(self, options: Options, events: Events) -> None:
        self.options = options
        self.run: Run | None = None
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self.process = subprocess.Popen(
            [sys.executable, "-m", "robagg.lab.executors.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=_environment(options.threads),
            # Ctrl-C is for the one who started the sweep: it stops the workers itself.
            start_new_session=True,
        )
        self.send(options.to_json())
        threading.Thread(target=self._listen, args=(events,), daemon=True).start()

    def send(self, text: str) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):  # it is gone: its end is noticed where its answers are read
            self.process.stdin.write(text.encode() + b"\n")
            self.process.stdin.flush()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self.errors.close()
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):  # what it had not read yet
                self.process.stdin.close()

    def explain_end(self) -> str:
        """How the process ended, with the end of its error output."""
        code = self.process.wait()
        how = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
        self.errors.seek(0)
        text = self.errors.read().decode(errors="replace").strip()[-2000:]
        return f"the worker {how}" + (f"; stderr: {text}" if text else "")

    def _listen(self, events: Events) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as answers:
            for line in answers:
                with contextlib.suppress(ValueError):  # torn by its end
                    events.put((self, json.loads(line)))
        events.put((self, None))


def run_pool(
    runs: Sequence[Run], options: Options, watcher: Watcher, *, write: Callable[[Run], str] = write_job
) -> None:
    """Do the runs in `options.workers` processes at once."""
    waiting, events, deaths = deque(runs), Events(), dict[str, int]()
    workers: set[Worker] = set()
    unstarted = 0
    left = len(runs)
    try:
        for k in range(min(options.workers, left)):
            workers.add(Worker(replace(options, device=options.devices[k % len(options.devices)]), events))
        while left:
            worker, message = _wait(events)
            if message is None:
                workers.discard(worker)
                why = worker.explain_end()
                worker.stop()
                if worker.run is None:
                    unstarted += 1
                    if unstarted > options.workers:
                        raise RuntimeError(f"workers exit during start-up: {why}")
                else:
                    run, worker.run = worker.run, None
                    deaths[run.key] = deaths.get(run.key, 0) + 1
                    if deaths[run.key] < ATTEMPTS:
                        watcher.say(f"{why}; begun again: {run}")
                        waiting.appendleft(run)
                    else:
                        left -= 1
                        watcher.finish(run, describe_failure(run.describe(), run.key, f"{why} (twice)"))
                if waiting:
                    workers.add(Worker(worker.options, events))
            elif "broken" in message:
                raise RuntimeError(f"a worker cannot begin:\n{message['broken']}")
            elif "progress" in message and worker.run is not None:
                watcher.progress(worker.run, *message["progress"])
            else:
                unstarted = 0
                if "record" in message and worker.run is not None:
                    run, worker.run = worker.run, None
                    left -= 1
                    watcher.finish(run, message["record"])
                if waiting:
                    worker.run = waiting.popleft()
                    worker.send(write(worker.run))
                    watcher.start(worker.run)
    finally:
        for worker in workers:
            worker.stop()


def _wait(events: Events) -> tuple[Worker, dict[str, Any] | None]:
    while True:
        # In short waits, so that Ctrl-C is heard on every system.
        with contextlib.suppress(queue.Empty):
            return events.get(timeout=0.5)


def _environment(threads: int) -> dict[str, str]:
    """Ours, with the threads of libraries that read them once, and with the place this package was imported from."""
    home = str(Path(__file__).parents[3])
    path = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    fixed = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    return os.environ | {"PYTHONPATH": os.pathsep.join(path)} | fixed
