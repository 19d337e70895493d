"""The paper's experiments as data, and their results beside the paper's numbers.

`python -m robagg.paper NAME` is `robagg paper NAME` with torch and numpy alone.
"""

from robagg.paper.experiment import Computation, Experiment, Place, Plan, place_store
from robagg.paper.experiments import EXPERIMENTS, find
from robagg.paper.only import Only

__all__ = ["EXPERIMENTS", "Computation", "Experiment", "Only", "Place", "Plan", "find", "place_store"]
