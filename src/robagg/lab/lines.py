"""What a sweep tells people in plain lines: all that there is without a terminal to draw on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from robagg.lab.driver import Summary, tell_time
from robagg.lab.estimate import Estimate
from robagg.lab.jobs import Watcher
from robagg.lab.run import Run
from robagg.lab.store import Record


class LineWatcher(Watcher):
    """A line for each run that is over."""

    def __init__(self, write: Callable[[str], object] | None = None) -> None:
        self.write = write or _print
        self.count = self.total = 0

    def begin(self, runs: Sequence[Run], todo: Sequence[Run], notes: Sequence[str]) -> None:
        self.total = len(todo)
        for note in notes:
            self.write(f"note: {note}")
        self.write(f"{len(runs)} runs, {len(runs) - len(todo)} of them in the store already, {len(todo)} to do")

    def finish(self, run: Run, record: Record) -> None:
        self.count += 1
        self.write(f"[{self.count}/{self.total}] {run}: {tell_outcome(record)}")

    def say(self, text: str) -> None:
        self.write(f"note: {text}")


def tell_outcome(record: Record) -> str:
    """What came of a run, in a few words."""
    if record["status"] != "ok":
        return f"failed: {record['error']}"
    wild = "" if record["diverged"] is None else f" (diverged in round {record['diverged']})"
    accuracy = "no accuracy" if record["accuracy"] is None else f"{record['accuracy']:.2f} %"
    return f"{accuracy}{wild} in {tell_time(record['seconds'])}"


def tell_estimate(estimate: Estimate) -> list[str]:
    """A dry run's answer.

    >>> tell_estimate(Estimate(378, 378, 2, work=7200.0, basis=["a few rounds of 7 of 126 cells"]))
    ['378 runs, 378 to do', 'about 60 min here with 2 workers (from a few rounds of 7 of 126 cells)']
    """
    lines = [f"{estimate.total} runs, {estimate.todo} to do"]
    basis = "; ".join(estimate.basis)
    workers = f"{estimate.workers} worker{'s' * (estimate.workers > 1)}"
    if estimate.seconds is None:
        return [*lines, f"no estimate of the time: {basis}"]
    source = f" (from {basis})" if basis else ""
    return [*lines, f"about {tell_time(estimate.seconds)} here with {workers}{source}"]


def tell_summary(summary: Summary) -> list[str]:
    """A sweep's last words: how it went, and the traceback of the first failure."""
    lines = [str(summary)]
    if summary.failed:
        first = summary.failed[0]
        lines += ["the first that failed:", first.get("traceback") or first["error"]]
    if summary.stopped:
        lines.append("stopped; the same command goes on from here")
    return lines


def _print(text: str) -> None:
    print(text, file=sys.stdout, flush=True)
