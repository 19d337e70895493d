"""The paper's experiments, one file each: what is varied, and what the paper claims of it.

`python -m robagg.paper NAME` does the runs with torch and numpy alone; `robagg paper NAME` also makes tables and
figures of them.
"""

from robagg.paper.catalogue import NAMES, describe, find
from robagg.paper.experiment import Experiment, Panel, Place, Plan, place_store
from robagg.paper.only import Only
from robagg.paper.walk import Computation, Computed

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
