"""Flower with robust aggregation: replace `FedAvg(...)` by `RobustStrategy(...)`; needs the extra `robagg[flower]`.

from robagg.flower import RobustStrategy

strategy = RobustStrategy(rule="scaledfilter", f=0.2)
result = strategy.start(grid=grid, initial_arrays=arrays, num_rounds=10)
"""

from robagg.server.requirement import check_requirement

# The lowest that all tests have run on, in both engines; the highest was 1.42. Newer ones are let in.
check_requirement("robagg.flower", "flwr", (1, 41), "Flower")

from robagg.flower.momentum import worker_momentum  # noqa: E402
from robagg.flower.strategy import RobustStrategy  # noqa: E402

__all__ = ["RobustStrategy", "worker_momentum"]
