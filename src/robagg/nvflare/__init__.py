"""NVFlare with robust aggregation: `aggregator=RobustAggregator(...)`; needs the extra `robagg[nvflare]`.

from robagg.nvflare import RobustAggregator, RobustFedAvg

aggregator = RobustAggregator("scaledfilter", f=0.2, journal="rounds.jsonl")
job.to_server(RobustFedAvg(num_clients=8, num_rounds=10, aggregator=aggregator))
"""

from robagg.server.requirement import check_requirement

# The lowest that all tests have run on, and the highest but for 2.9.1rc5. Newer ones are let in.
check_requirement("robagg.nvflare", "nvflare", (2, 9), "NVFlare")

from robagg.nvflare.aggregator import RobustAggregator  # noqa: E402
from robagg.nvflare.controller import RobustFedAvg  # noqa: E402

__all__ = ["RobustAggregator", "RobustFedAvg"]
