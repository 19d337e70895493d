"""NVFlare's FedAvg for sites of which some fail: one that answers with an error, or not at all, costs its own reply."""

from __future__ import annotations

from typing import Any

from nvflare.app_common.workflows.fedavg import FedAvg

TIMEOUT = 600
"""Seconds to wait for replies. A site that stays silent costs every round this long."""


class RobustFedAvg(FedAvg):  # type: ignore[misc,unused-ignore]
    """FedAvg that neither ends with the first site's error nor waits for ever for a site that is silent.

    Args:
        timeout: how many seconds a round waits for replies, from the task's start on; 0 waits for ever.
        ignore_result_error: FedAvg's own setting, under which the first site that fails ends the run unless it is True.
        args: those of FedAvg.
        kwargs: those of FedAvg.
    """

    def __init__(self, *args: Any, timeout: int = TIMEOUT, ignore_result_error: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, ignore_result_error=ignore_result_error, **kwargs)
        self.timeout = timeout

    def send_model(self, *args: Any, **kwargs: Any) -> None:
        """Ask for training, for so long."""
        super().send_model(*args, **{"timeout": self.timeout} | kwargs)
