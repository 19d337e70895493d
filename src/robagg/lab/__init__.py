"""Many runs from one small file, stopped and taken up again without losing one.

A `Run` is one spec with a key; `grid` makes many; `sweep` does those that a `Store` has no result of, here, in a pool
of processes or on Ray; `load` gives the records for pandas.
"""

from robagg.lab.estimation import Estimate, estimate
from robagg.lab.execution import execute
from robagg.lab.grids import grid
from robagg.lab.loading import load
from robagg.lab.options import Options
from robagg.lab.run import RESULTS_VERSION, Run
from robagg.lab.store import Store, StoreBusyError
from robagg.lab.sweep_file import Sweep, read_sweep
from robagg.lab.sweeps import Summary, sweep
from robagg.lab.watcher import Watcher

__all__ = [
    "RESULTS_VERSION",
    "Estimate",
    "Options",
    "Run",
    "Store",
    "StoreBusyError",
    "Summary",
    "Sweep",
    "Watcher",
    "estimate",
    "execute",
    "grid",
    "load",
    "read_sweep",
    "sweep",
]
