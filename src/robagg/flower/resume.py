"""What of Flower's a saved state holds: the model's record, and what the strategy inside has gathered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from flwr.app import Array, ArrayRecord, MetricRecord
from flwr.serverapp.strategy import FedAvg, Result

from robagg._core.checks import is_whole
from robagg._core.leaf import describe_kind
from robagg.server.plain import from_plain, to_plain

RECORD = "record"


def pack_record(arrays: ArrayRecord) -> list[dict[str, Any]]:
    """A record as plain data, byte for byte."""
    return [
        {"name": name, "dtype": array.dtype, "shape": list(array.shape), "stype": array.stype}
        | {"data": torch.frombuffer(bytearray(array.data), dtype=torch.uint8)}
        for name, array in arrays.items()
    ]


def unpack_record(entries: list[dict[str, Any]]) -> ArrayRecord:
    """The record that `pack_record` took."""
    return ArrayRecord(
        {
            entry["name"]: Array(entry["dtype"], tuple(entry["shape"]), entry["stype"], entry["data"].numpy().tobytes())
            for entry in entries
        }
    )


def check_start(initial_arrays: object, num_rounds: object) -> None:
    """Refuse what a run cannot begin with."""
    if not isinstance(initial_arrays, ArrayRecord):
        raise TypeError(f"initial_arrays must be an ArrayRecord, got {describe_kind(initial_arrays)}")
    if not is_whole(num_rounds):
        raise TypeError(f"num_rounds must be a whole number, got {num_rounds!r}")


def take_up(saved: list[dict[str, Any]], initial: ArrayRecord) -> ArrayRecord:
    """The saved model, which must have the arrays of the one that the run was to begin with."""
    record = unpack_record(saved)
    kept, wanted = ({name: tuple(array.shape) for name, array in arrays.items()} for arrays in (record, initial))
    if kept != wanted:
        odd = next(name for name in (*wanted, *kept) if wanted.get(name) != kept.get(name))
        raise ValueError(
            f"the state file must hold the model of initial_arrays, got {odd!r} as {_describe(kept.get(odd))} where it "
            f"is {_describe(wanted.get(odd))}: of another model, or an earlier one, move the file away"
        )
    return record


def save_strategy(strategy: FedAvg | None) -> dict[str, Any]:
    """The arrays that a strategy keeps from round to round, such as FedAdam's moments, as plain data."""
    kept: dict[str, Any] = {}
    for name, value in ({} if strategy is None else vars(strategy)).items():
        if isinstance(value, ArrayRecord):
            kept[name] = {RECORD: pack_record(value)}
        elif _holds_arrays(value):
            kept[name] = to_plain(value)
    return kept


def save(strategy: FedAvg | None, arrays: ArrayRecord) -> dict[str, Any]:
    """What the server keeps of a round: the next model, and what the strategy inside has gathered."""
    return {"model": pack_record(arrays), "extra": save_strategy(strategy)}


def load_strategy(strategy: FedAvg | None, kept: dict[str, Any]) -> None:
    """Give a strategy the arrays that another of its kind has kept."""
    for name, value in kept.items():
        is_record = isinstance(value, dict) and value.keys() == {RECORD}
        setattr(strategy, name, unpack_record(value[RECORD]) if is_record else from_plain(value))


def shift_rounds(evaluate: Callable[[int, ArrayRecord], MetricRecord | None], done: int) -> Any:
    """A function for evaluation that is called with the number of the round in the whole run."""
    return lambda server_round, arrays: evaluate(server_round + done, arrays)


def shift_result(result: Result, done: int) -> Result:
    """The result with its metrics by the number of the round in the whole run."""
    for name in ("train_metrics_clientapp", "evaluate_metrics_clientapp", "evaluate_metrics_serverapp"):
        setattr(result, name, {number + done: metrics for number, metrics in getattr(result, name).items()})
    return result


def _describe(shape: tuple[int, ...] | None) -> str:
    return "not there" if shape is None else f"of shape {shape}"


def _holds_arrays(value: Any) -> bool:
    parts = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else [value]
    return bool(parts) and all(isinstance(part, np.ndarray | np.generic) for part in parts)
