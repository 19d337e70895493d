"""What runs at the sites of the simulator, and the model they start from; NVFlare copies this file into the job.

It needs NVFlare and NumPy alone: a site is a process, and twelve of them start at the same time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.dxo import from_shareable as read_dxo
from nvflare.apis.event_type import EventType
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal
from nvflare.app_common.abstract.model import ModelLearnable, make_model_learnable
from nvflare.app_common.abstract.model_persistor import ModelPersistor
from nvflare.app_common.app_constant import AppConstants

from server import hostile
from server.hostile import SIZE, Hostile, Numbers, draw_model, draw_update, push

STEPS = "NUM_STEPS_CURRENT_ROUND"
Craft = Callable[[Numbers, Numbers], Shareable]
"""From what a site got and what an honest one would send, to what it sends."""


def fill(numbers: Any, *, steps: Any = 10, kind: str = DataKind.WEIGHTS, **metrics: Any) -> Shareable:
    """A reply as the server expects it."""
    return DXO(kind, data=numbers, meta={STEPS: steps, "initial_metrics": {"loss": 1e12} | metrics}).to_shareable()


def send(attack: Hostile) -> Craft:
    """A reply of the table that all frameworks share."""

    def craft(sent: Numbers, trained: Numbers) -> Shareable:
        numbers, metrics = attack(sent, trained, {SIZE: 10, "loss": 1e12})
        return fill(numbers, steps=metrics.pop(SIZE), **metrics)

    return craft


def bias(value: Any) -> Craft:
    """The honest update with another `layer.bias`."""
    return lambda sent, trained: fill(trained | {"layer.bias": value})


def fail(sent: Numbers, trained: Numbers) -> Shareable:
    raise RuntimeError("this site fails on purpose")


def speak_for_another(sent: Numbers, trained: Numbers) -> Shareable:
    reply = fill(push(sent, trained, -10.0))
    reply["DXO"]["meta"] |= {"client_name": "site-2", "site_name": "site-2"}
    reply.set_header("client_name", "site-2")
    return reply


def replace_data(data: Any) -> Shareable:
    """A reply whose data DXO itself would not take."""
    reply = fill({})
    reply["DXO"]["data"] = data
    return reply


def with_metrics(numbers: Numbers, metrics: Any) -> Shareable:
    return DXO(DataKind.WEIGHTS, data=numbers, meta={"initial_metrics": metrics}).to_shareable()


def without_content(sent: Numbers, trained: Numbers) -> Shareable:
    reply = fill(trained)
    del reply["DXO"]
    return reply


def other_round(sent: Numbers, trained: Numbers) -> Shareable:
    reply = fill(push(sent, trained, -10.0))
    reply.set_header(AppConstants.CURRENT_ROUND, 10**9)
    return reply


LOST: dict[str, Craft] = {
    "error": lambda s, t: make_reply(ReturnCode.EXECUTION_RESULT_ERROR),
    "exception": fail,
    "return-code": lambda s, t: make_reply("\x1b[2J\x1b[31msite-1 sound"),
}
"""No reply at all: it lowers n."""

UNSENDABLE = {"objects", "unwritable-examples"}
"""What NVFlare's own serialisation does not take."""

BROKEN: dict[str, Craft] = {
    **{name: send(attack) for name, attack in hostile.BROKEN.items() if name not in UNSENDABLE},
    "bytes": bias(b"\x93NUMPY" + b"?" * 40),
    "text": bias("hello"),
    "none": bias(None),
    "nested": bias({"deeper": np.zeros(7, np.float32)}),
    "deeply-nested": bias([[[[[[[[0.0]]]]]]]]),
    "far-too-long": bias(np.zeros(5_000_000, np.float32)),
    "empty-array": bias(np.zeros(0, np.float32)),
    "numbers-as-names": lambda s, t: fill(dict(enumerate(t.values()))),
    "list-of-arrays": lambda s, t: replace_data(list(t.values())),
    "metrics-only": lambda s, t: fill({"loss": 0.0}, kind=DataKind.METRICS),
    "differences": lambda s, t: fill(push(s, t, -10.0), kind=DataKind.WEIGHT_DIFF),
    "unknown-kind": lambda s, t: fill({"loss": 0.0}, kind="\x1b[2Jkind"),
    "nothing": lambda s, t: Shareable(),
    "no-content": without_content,
}
"""Replies that cannot be used: they must be dropped with a reason."""

FAR: dict[str, Craft] = {
    **{name: send(attack) for name, attack in hostile.FAR.items()},
    "metrics-as-text": lambda s, t: with_metrics(push(s, t, -10.0), "\x1b[2J"),
    "a-million-metrics": lambda s, t: with_metrics(push(s, t, -10.0), dict.fromkeys(map(str, range(10**6)), 1.0)),
    "another's-name": speak_for_another,
    "another-round": other_round,
}
"""Replies that can be read but lie far from the honest ones: the rule must cope."""

CASES = LOST | BROKEN | FAR


class Site(Executor):  # type: ignore[misc,unused-ignore]
    """An honest site; the first one sends one hostile case after the other, a round each, and then nothing at all.

    Args:
        folder: where the second one leaves the models that it gets.
    """

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.folder = folder

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        if event_type == EventType.START_RUN:
            (Path(self.folder) / f"ready-{fl_ctx.get_identity_name()}").touch()

    def execute(self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal) -> Shareable:
        number = int(fl_ctx.get_identity_name().removeprefix("site-"))
        round_number = shareable.get_header(AppConstants.CURRENT_ROUND)
        if number == 2:
            np.savez(Path(self.folder) / f"{round_number}.npz", **read_dxo(shareable).data)
        model = draw_model()
        update = draw_update(model, number)
        if number > 1:
            return fill(update, loss=float(number))
        if round_number < len(CASES):
            return list(CASES.values())[round_number](model, update)
        while not abort_signal.triggered:
            time.sleep(0.1)
        return make_reply(ReturnCode.TASK_ABORTED)


class Start(ModelPersistor):  # type: ignore[misc,unused-ignore]
    """The model the run starts from, when all sites are there: a round's time runs on while processes start.

    Args:
        folder: where the last model goes.
        n: how many sites there are.
    """

    def __init__(self, folder: str, n: int) -> None:
        super().__init__()
        self.folder, self.n = folder, n

    def load_model(self, fl_ctx: FLContext) -> ModelLearnable:
        while len(list(Path(self.folder).glob("ready-*"))) < self.n:
            time.sleep(0.1)
        return make_model_learnable(draw_model(), {})

    def save_model(self, model: ModelLearnable, fl_ctx: FLContext) -> None:
        np.savez(Path(self.folder) / "last.npz", **model["weights"])
