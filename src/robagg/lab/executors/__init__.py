"""What does the runs of a sweep: this process, a pool of processes, or Ray."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from robagg.lab.options import Options
from robagg.lab.run import Run
from robagg.lab.watcher import Watcher

Executor = Callable[[Sequence[Run], Options, Watcher], None]
"""Does the runs and calls the watcher's `start`, `progress` and `finish` for each."""
