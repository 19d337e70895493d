"""The paper's experiments, one file each: what is varied, and what the paper claims of it.

`python -m robagg.lab.paper NAME` does the runs with torch and numpy alone; `robagg paper NAME` also makes tables and
figures of them.
"""

from robagg.lab.paper.catalogue import NAMES, describe, find
from robagg.lab.paper.experiment import Experiment, Panel, Place, Plan, place_store
from robagg.lab.paper.only import Only
from robagg.lab.paper.walk import Computation, Computed

__all__ = [
    "NAMES",
    "Computation",
    "Computed",
    "Experiment",
    "Only",
    "Panel",
    "Place",
    "Plan",
    "describe",
    "find",
    "place_store",
]
