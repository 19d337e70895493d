"""Flower with robust aggregation: replace `FedAvg(...)` by `RobustStrategy(...)`; needs the extra `robagg[flower]`.

from robagg.flower import RobustStrategy

strategy = RobustStrategy(rule="nnm >> tq", f=0.2)
result = strategy.start(grid=grid, initial_arrays=arrays, num_rounds=10)
"""

from robagg.flower.version import check_flower

check_flower()

from robagg.flower.momentum import worker_momentum  # noqa: E402
from robagg.flower.strategy import RobustStrategy  # noqa: E402

__all__ = ["RobustStrategy", "worker_momentum"]
