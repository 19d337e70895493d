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
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal
from nvflare.app_common.abstract.model import ModelLearnable, make_model_learnable
from nvflare.app_common.abstract.model_persistor import ModelPersistor
from nvflare.app_common.app_constant import AppConstants

SHAPES = {"layer.weight": (7, 5), "layer.bias": (7,), "head.weight": (3, 7)}
STEPS = "NUM_STEPS_CURRENT_ROUND"
Numbers = dict[str, Any]
Hostile = Callable[[Numbers, Numbers], Shareable]
"""From what a site got and what an honest one would send, to what it sends."""


def draw_model() -> Numbers:
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal(shape, dtype=np.float32) for name, shape in SHAPES.items()}


def draw_update(model: Numbers, seed: int) -> Numbers:
    """The model after an honest site's training: a common step and its own noise."""
    common, own = np.random.default_rng(7), np.random.default_rng(1000 + seed)
    return {
        name: (w + 0.1 * (common.standard_normal(w.shape) + 0.3 * own.standard_normal(w.shape))).astype(w.dtype)
        for name, w in model.items()
    }


def fill(numbers: Any, *, steps: Any = 10, kind: str = DataKind.WEIGHTS, **metrics: Any) -> Shareable:
    """A reply as the server expects it."""
    return DXO(kind, data=numbers, meta={STEPS: steps, "initial_metrics": {"loss": 1e12} | metrics}).to_shareable()


def push(sent: Numbers, trained: Numbers, factor: float) -> Numbers:
    return {name: (w + factor * (trained[name] - w)).astype(w.dtype) for name, w in sent.items()}


def claim(steps: Any) -> Hostile:
    """The opposite of the honest update, with some number of steps."""
    return lambda sent, trained: fill(push(sent, trained, -1.0), steps=steps)


def bias(value: Any) -> Hostile:
    """The honest update with another `layer.bias`."""
    return lambda sent, trained: fill(trained | {"layer.bias": value})


def each(change: Callable[[Any], Any]) -> Hostile:
    """The honest update with every array changed."""
    return lambda sent, trained: fill({name: change(value) for name, value in trained.items()})


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


def without_content(sent: Numbers, trained: Numbers) -> Shareable:
    reply = fill(trained)
    del reply["DXO"]
    return reply


def other_round(sent: Numbers, trained: Numbers) -> Shareable:
    reply = fill(push(sent, trained, -10.0))
    reply.set_header(AppConstants.CURRENT_ROUND, 10**9)
    return reply


LOST: dict[str, Hostile] = {
    "error": lambda s, t: make_reply(ReturnCode.EXECUTION_RESULT_ERROR),
    "exception": fail,
    "return-code": lambda s, t: make_reply("\x1b[2J\x1b[31msite-1 sound"),
}
"""No reply at all: it lowers n."""

BROKEN: dict[str, Hostile] = {
    "nan": each(lambda v: np.full(v.shape, np.nan, v.dtype)),
    "one-inf": bias(np.array([0, 0, np.inf, 0, 0, 0, 0], np.float32)),
    "wrong-shape": each(lambda v: np.zeros((3, *v.shape), v.dtype)),
    "extra-keys": lambda s, t: fill(t | {"backdoor": np.ones(4, np.float32)}),
    "missing-key": lambda s, t: fill({name: v for name, v in t.items() if name != "layer.bias"}),
    "complex": each(lambda v: v + np.complex64(100j)),
    "strings": each(lambda v: np.full(v.shape, "hello")),
    "corrupt": each(lambda v: b"\x93NUMPY" + b"?" * 40),
    "text": bias("hello"),
    "nothing-there": bias(None),
    "nested": bias({"deeper": np.zeros(7, np.float32)}),
    "deeply-nested": bias([[[[[[[[0.0]]]]]]]]),
    "records": bias(np.zeros(7, "f4,f4")),
    "long-double": bias(np.zeros(7, np.longdouble)),
    "beyond-float32": bias(np.full(7, 1e300)),
    "far-too-long": bias(np.zeros(5_000_000, np.float32)),
    "empty-array": bias(np.zeros(0, np.float32)),
    "no-arrays": lambda s, t: fill({}),
    "number-as-name": lambda s, t: fill(dict(enumerate(t.values()))),
    "coloured-name": lambda s, t: fill(t | {"\x1b[2J\u202ex": t["layer.bias"]}),
    "list-of-arrays": lambda s, t: replace_data(list(t.values())),
    "metrics-only": lambda s, t: fill({"loss": 0.0}, kind=DataKind.METRICS),
    "differences": lambda s, t: fill(push(s, t, -10.0), kind=DataKind.WEIGHT_DIFF),
    "unknown-kind": lambda s, t: fill({"loss": 0.0}, kind="\x1b[2Jkind"),
    "nothing": lambda s, t: Shareable(),
    "no-content": without_content,
    "metrics-as-text": lambda s, t: DXO(DataKind.WEIGHTS, data=t, meta={"initial_metrics": "\x1b[2J"}).to_shareable(),
    "nan-steps": claim(float("nan")),
    "infinite-steps": claim(float("inf")),
    "negative-steps": claim(-5),
    "list-of-steps": claim([1, 2]),
}  # fmt: skip
"""Replies that cannot be used: they must be dropped with a reason."""

FAR: dict[str, Hostile] = {
    "ipm": lambda s, t: fill(push(s, t, -10.0)),
    "sign-flip": lambda s, t: fill(push(s, t, -1.0)),
    "many-steps": claim(10**12),
    "zero-steps": claim(0),
    "huge": each(lambda v: np.full(v.shape, 3e38, v.dtype)),
    "integers": bias(np.full(7, 2**62)),
    "booleans": bias(np.ones(7, bool)),
    "zeros": each(np.zeros_like),
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
    """The model the run starts from."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.folder = folder

    def load_model(self, fl_ctx: FLContext) -> ModelLearnable:
        return make_model_learnable(draw_model(), {})

    def save_model(self, model: ModelLearnable, fl_ctx: FLContext) -> None:
        np.savez(Path(self.folder) / "last.npz", **model["weights"])
