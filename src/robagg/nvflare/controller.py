"""NVFlare's FedAvg for sites of which some fail, and for a server that may: neither ends the run."""

from __future__ import annotations

from typing import Any

from nvflare.app_common.abstract.fl_model import FLModel
from nvflare.app_common.workflows.fedavg import FedAvg

from robagg.nvflare.aggregator import RobustAggregator

TIMEOUT = 600
"""Seconds to wait for replies. A site that stays silent costs every round this long."""


class RobustFedAvg(FedAvg):  # type: ignore[misc,unused-ignore]
    """FedAvg that neither ends with the first site's error nor waits for ever for a site that is silent.

    With an aggregator that has a `state` which a killed run left, only the rounds that it lacked are run, from the
    model it had.

    Args:
        timeout: how many seconds a round waits for replies, from the task's start on; 0 waits for ever.
        ignore_result_error: FedAvg's own setting, under which the first site that fails ends the run unless it is True.
        args: those of FedAvg.
        kwargs: those of FedAvg.
    """

    start_round: int
    num_rounds: int
    goes_on = True
    """What the aggregator looks for."""

    def __init__(self, *args: Any, timeout: int = TIMEOUT, ignore_result_error: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, ignore_result_error=ignore_result_error, **kwargs)
        self.timeout = timeout

    def run(self) -> None:
        """Run the rounds that are left."""
        if not isinstance(self.aggregator, RobustAggregator):
            super().run()
            return
        server, end = self.aggregator.server, self.start_round + self.num_rounds
        if server.model is None:
            server.begin()
        else:
            self.start_round = min(server.round + 1, end)
            self.num_rounds = end - self.start_round
            self.model = FLModel(params=server.model)
            self.info(f"robagg: round {server.round} of run {server.run} is done, {self.num_rounds} are left")
        super().run()
        if self.num_rounds:
            server.check_skipped(self.num_rounds)
        else:
            self.save_model(self.model)

    def send_model(self, *args: Any, **kwargs: Any) -> None:
        """Ask for training, for so long."""
        super().send_model(*args, **{"timeout": self.timeout} | kwargs)
