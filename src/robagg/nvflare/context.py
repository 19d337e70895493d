"""What NVFlare's context says: who is at the other end, what came from there, and how the run is set up."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import torch
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.workflows.base_model_controller import BaseModelController


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


def warn_of_errors(fl_ctx: FLContext, logger: logging.Logger) -> None:
    """Say so where the first site that answers with an error ends the run: no aggregator can prevent that."""
    runner = fl_ctx.get_prop(FLContextKey.RUNNER)
    for workflow in getattr(getattr(runner, "config", None), "workflows", ()):
        controller = workflow.controller
        if (
            isinstance(controller, BaseModelController)
            and getattr(controller, "_ignore_result_error", True) is not True
        ):
            logger.warning(
                "robagg: a site that answers with an error ends this run, and one that is silent stalls it: "
                "use robagg.nvflare.RobustFedAvg in place of %s",
                type(controller).__name__,
            )


def load(value: Any) -> Any:
    """An array that NVFlare left on the disk (enable_tensor_disk_offload), in memory; any other as it is."""
    return value.materialize() if callable(getattr(value, "materialize", None)) else value


def blank(value: Any) -> Any:
    """Zeros in place of an array of the model: where differences start from."""
    return torch.zeros_like(value) if isinstance(value, torch.Tensor) else np.zeros_like(value)
