"""Sites that learn digits, of which two are hostile in turn; NVFlare copies this file into the job."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.executor import Executor
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal
from nvflare.app_common.abstract.model import ModelLearnable, make_model_learnable
from nvflare.app_common.abstract.model_persistor import ModelPersistor
from nvflare.app_common.app_constant import AppConstants

from server.softmax import answer, start


class Learner(Executor):  # type: ignore[misc,unused-ignore]
    """One of the sites.

    Args:
        folder: where `digits.npz` is; the first site says there which round it has begun.
    """

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.folder = folder

    def execute(self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal) -> Shareable:
        number = int(fl_ctx.get_identity_name().removeprefix("site-")) - 1
        round_number = shareable.get_header(AppConstants.CURRENT_ROUND)
        if number == 0:
            (Path(self.folder) / f"began-{round_number}").touch()
        update = answer(from_shareable(shareable).data, Path(self.folder) / "digits.npz", number, round_number)
        time.sleep(0.3)  # so that there is a middle of a round
        return DXO(DataKind.WEIGHTS, data=update).to_shareable()


class Zero(ModelPersistor):  # type: ignore[misc,unused-ignore]
    """A model of zeros to start from; the last one goes to `last.npz` in the folder."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.folder = folder

    def load_model(self, fl_ctx: FLContext) -> ModelLearnable:
        return make_model_learnable(start(), {})

    def save_model(self, model: ModelLearnable, fl_ctx: FLContext) -> None:
        np.savez(Path(self.folder) / "last.npz", **model["weights"])
