"""A federation in one process: a model, honest replies, hostile ones, and rounds without an engine."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs the extra robagg[flower]")

from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAvg
from flwr.supercore.task_identity import TaskIdentity

from robagg.flower import RobustStrategy
from robagg.server import RoundReport
from server.hostile import draw_model as draw_model
from server.hostile import draw_update, flatten

EXAMPLE = Path(__file__).parents[2] / "examples" / "flower"
if str(EXAMPLE) not in sys.path:
    sys.path.append(str(EXAMPLE))
attackers = importlib.import_module("robust_digits.attackers")

# Flower's engines set these; here there is none.
TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 1, 1

Numbers = Mapping[str, np.ndarray]


class Grid:
    """As much of a grid as sampling needs; nodes may come late."""

    def __init__(self, n: int, arrivals: Sequence[int] = ()) -> None:
        self.n = n
        self.arrivals = list(arrivals)

    def get_node_ids(self) -> list[int]:
        count = self.arrivals.pop(0) if self.arrivals else self.n
        return [100 + i for i in range(count)]


def pack(numbers: Numbers) -> ArrayRecord:
    return ArrayRecord({name: Array(np.asarray(value)) for name, value in numbers.items()})


def unpack(record: ArrayRecord) -> dict[str, np.ndarray]:
    return {name: array.numpy() for name, array in record.items()}


def fill(numbers: Numbers | ArrayRecord, **metrics: Any) -> RecordDict:
    record = numbers if isinstance(numbers, ArrayRecord) else pack(numbers)
    told = {"num-examples": 10, "loss": 1.0} | metrics
    return RecordDict({"arrays": record, "metrics": MetricRecord(told)})


def ask(strategy: FedAvg, arrays: ArrayRecord, n: int, server_round: int = 1) -> list[Message]:
    """The strategy's messages, with ids as a grid gives them."""
    messages = list(strategy.configure_train(server_round, arrays, ConfigRecord(), Grid(n)))  # type: ignore[arg-type]
    messages.sort(key=lambda m: m.metadata.dst_node_id)
    for i, message in enumerate(messages):
        message.metadata.__dict__["_message_id"] = f"{server_round}-{i}"
    return messages


Content = RecordDict | Error | None
"""What a node sends; None for nothing at all."""


def answer(messages: Sequence[Message], contents: Sequence[Content]) -> list[Message]:
    return [
        Message(content, reply_to=message)
        for message, content in zip(messages, contents, strict=True)
        if content is not None
    ]


def run_round(strategy: FedAvg, arrays: ArrayRecord, contents: Sequence[Content], server_round: int = 1) -> Any:
    """One round with these replies, in the order of the nodes' ids."""
    messages = ask(strategy, arrays, len(contents), server_round)
    result = strategy.aggregate_train(server_round, answer(messages, contents))
    if isinstance(strategy, RobustStrategy):
        assert strategy.server.flush()
    return result


def honest_mean(model: Numbers, n: int) -> np.ndarray:
    return np.mean([flatten(draw_update(model, i)) for i in range(n)], axis=0)


def watch(strategy: RobustStrategy) -> list[RoundReport]:
    """The reports that the strategy makes from now on."""
    seen: list[RoundReport] = []
    enter = strategy.server.enter

    def watched(*arguments: Any, **options: Any) -> RoundReport:
        seen.append(enter(*arguments, **options))
        return seen[-1]

    strategy.server.enter = watched  # type: ignore[method-assign]
    return seen


Hostile = Callable[[ArrayRecord, ArrayRecord, MetricRecord], RecordDict]
