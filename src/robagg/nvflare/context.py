"""What NVFlare's context says: who is at the other end, what came from there, and how the run is set up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.workflows.base_model_controller import BaseModelController

from robagg._core.checks import is_number
from robagg.server import RobustServer

MOST_METRICS = 1000


def name_site(fl_ctx: FLContext) -> str:
    """The site at the other end, as NVFlare authenticated it."""
    return str(fl_ctx.get_peer_context().get_identity_name())


def read_answer(fl_ctx: FLContext) -> Shareable:
    """What the site at the other end sent."""
    answer: Shareable = fl_ctx.get_peer_context().get_prop(FLContextKey.SHAREABLE)
    return answer


def find_folder(fl_ctx: FLContext) -> Path:
    """Where the run keeps its files."""
    return Path(fl_ctx.get_engine().get_workspace().get_run_dir(fl_ctx.get_job_id()))


def look_at_controllers(fl_ctx: FLContext, server: RobustServer) -> bool:
    """Whether a controller goes on from the server's state; warns where one cannot, or ends with the first error."""
    runner = fl_ctx.get_prop(FLContextKey.RUNNER)
    controllers = [workflow.controller for workflow in getattr(getattr(runner, "config", None), "workflows", ())]
    goes_on = any(getattr(controller, "goes_on", False) for controller in controllers)
    for controller in controllers:
        if (
            isinstance(controller, BaseModelController)
            and getattr(controller, "_ignore_result_error", True) is not True
        ):
            server.logger.warning(
                "robagg: a site that answers with an error ends this run, and one that is silent stalls it: "
                "use robagg.nvflare.RobustFedAvg in place of %s",
                type(controller).__name__,
            )
    if server.model is not None and not goes_on:
        server.logger.warning(
            "robagg: the state has the model after round %d, but the run starts from the job's own: only "
            "robagg.nvflare.RobustFedAvg goes on with it",
            server.round,
        )
    return goes_on


def read_metrics(metrics: Any) -> dict[str, Any]:
    """The numbers among a site's metrics, of which there are not many: the rest would wait for the end of the round.

    >>> read_metrics({"loss": 1.0, "curve": [1.0] * 10**6, 7: 8})
    {'loss': 1.0}
    """
    named = metrics.items() if isinstance(metrics, Mapping) else ()
    return {name: value for name, value in islice(named, MOST_METRICS) if isinstance(name, str) and is_number(value)}


class Arrays(Mapping[Any, Any]):
    """A reply's arrays. Those that NVFlare left on the disk (enable_tensor_disk_offload) are loaded when read."""

    def __init__(self, params: Mapping[Any, Any]) -> None:
        self.params = params

    def __getitem__(self, name: Any) -> Any:
        value = self.params[name]
        return value.materialize() if callable(getattr(value, "materialize", None)) else value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.params)

    def __len__(self) -> int:
        return len(self.params)


def blank(value: Any) -> Any:
    """Zeros in place of an array of the model: where differences start from."""
    return torch.zeros_like(value) if isinstance(value, torch.Tensor) else np.zeros_like(value)
