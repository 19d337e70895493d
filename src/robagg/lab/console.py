"""A sweep in plain lines of text, for output that is no terminal to draw on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from robagg.lab.estimation import Estimate
from robagg.lab.lines import Record
from robagg.lab.run import Run
from robagg.lab.sweeps import Summary, format_time
from robagg.lab.watcher import Watcher


class LineWatcher(Watcher):
    """One line per run that is over."""

    def __init__(self, write: Callable[[str], object] | None = None) -> None:
        self.write = write or partial(print, flush=True)
        self.count = self.total = 0

    def begin(self, runs: Sequence[Run], todo: Sequence[Run]) -> None:
        self.total = len(todo)
        self.write(f"{len(runs)} runs, {len(runs) - len(todo)} of them in the store already, {len(todo)} to do")

    def finish(self, run: Run, record: Record) -> None:
        self.count += 1
        self.write(f"[{self.count}/{self.total}] {run}: {format_outcome(record)}")

    def say(self, text: str) -> None:
        self.write(f"note: {text}")


def format_outcome(record: Record) -> str:
    """What came of a run, in a few words."""
    if record["status"] != "ok":
        return f"failed: {record['error']}"
    wild = "" if record["diverged"] is None else f" (diverged in round {record['diverged']})"
    accuracy = "no accuracy" if record["accuracy"] is None else f"{record['accuracy']:.2f} %"
    return f"{accuracy}{wild} in {format_time(record['seconds'])}"


def format_estimate(estimate: Estimate) -> list[str]:
    """A dry run's answer.

    >>> format_estimate(Estimate(378, 378, 2, work=7200.0, basis=["a few rounds of 7 of 126 cells"]))
    ['378 runs, 378 to do', 'about 60 min here with 2 workers (from a few rounds of 7 of 126 cells)']
    """
    lines = [f"{estimate.total} runs, {estimate.todo} to do"]
    basis = "; ".join(estimate.basis)
    workers = f"{estimate.workers} worker{'s' * (estimate.workers > 1)}"
    if estimate.seconds is None:
        return [*lines, f"no estimate of the time: {basis}"]
    source = f" (from {basis})" if basis else ""
    return [*lines, f"about {format_time(estimate.seconds)} here with {workers}{source}"]


def format_summary(summary: Summary) -> list[str]:
    """How a sweep went, with the traceback of the first failure."""
    lines = [str(summary)]
    if summary.failed:
        first = summary.failed[0]
        lines += ["the first that failed:", first.get("traceback") or first["error"]]
    if summary.stopped:
        lines.append("stopped; the same command goes on from here")
    return lines


def align(title: str, head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Texts in columns under a head.

    >>> print(align("accuracy", ["rule", "ipm"], [["tq", "97.1"], ["mean", "9.8"]]))
    accuracy
    rule  ipm
    tq    97.1
    mean  9.8
    """
    widths = [max(len(line[k]) for line in (head, *lines)) for k in range(len(head))]
    rows = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in (head, *lines)]
    return "\n".join(row.rstrip() for row in ([title] if title else []) + rows)
