"""A worker of the pool: reads runs as lines of JSON, does them, and answers in lines of JSON.

The first line has the options. What a plugin prints goes to the error output, since the other is the answers'.
"""

from __future__ import annotations

import io
import json
import os
import queue
import sys
import threading
import time
import traceback
from typing import Any

REPORT_EVERY = 0.25
"""Seconds between two lines about a run's progress."""


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # a process that is killed does not come to empty its buffer
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()

    def answer(**message: Any) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    try:
        # Imported here, so that a worker that cannot import says so.
        from robagg.lab.estimation import measure_job
        from robagg.lab.executors.job import do_job, prepare
        from robagg.lab.options import Options

        options = Options.from_json(lines.get())
        prepare(options)
    except Exception:
        answer(broken=traceback.format_exc())
        return
    answer(ready=os.getpid())
    while True:
        job = lines.get()
        last = time.monotonic()

        def report(done: int, rounds: int, accuracy: float | None) -> None:
            nonlocal last
            if time.monotonic() - last > REPORT_EVERY:
                last = time.monotonic()
                answer(progress=[done, rounds, accuracy])

        if "measure" in json.loads(job):
            answer(record=measure_job(job, options))
        else:
            answer(record=do_job(job, options, report))


def _listen(lines: queue.SimpleQueue[str]) -> None:
    """Pass lines on; at their end whoever started this process is gone, and so is the reason to work."""
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
