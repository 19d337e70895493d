"""Flower's old API (`server_fn`, `fraction_fit`, `flwr.server.strategy`): one sentence each on what to change."""

from __future__ import annotations

from typing import Any, NoReturn

RENAMED = {
    "fraction_fit": "fraction_train=",
    "min_fit_clients": "min_train_nodes=",
    "min_evaluate_clients": "min_evaluate_nodes=",
    "min_available_clients": "min_available_nodes=",
    "fit_metrics_aggregation_fn": "train_metrics_aggr_fn=",
    "evaluate_metrics_aggregation_fn": "evaluate_metrics_aggr_fn=",
    "evaluate_fn": "evaluate_fn= of start()",
    "initial_parameters": "initial_arrays= of start()",
    "on_fit_config_fn": "train_config= of start()",
    "on_evaluate_config_fn": "evaluate_config= of start()",
    "accept_failures": "nothing: failures never end a round",
    "inplace": "nothing: replies are never changed",
}
"""Arguments of the old FedAvg, and what takes their place."""


def refuse_old_arguments(arguments: dict[str, Any]) -> None:
    """Raise TypeError for an argument of the old FedAvg."""
    for name in arguments:
        if name in RENAMED:
            raise TypeError(f"{name}= is of Flower's old API; here it is {RENAMED[name]}")


def refuse_old_strategy(around: Any) -> None:
    """Raise TypeError for what cannot be a strategy inside."""
    kind = type(around)
    if kind.__module__.startswith("flwr.server."):
        raise TypeError(
            f"around must be a strategy of Flower's Message API, got {kind.__name__} of flwr.server.strategy: "
            f"import {kind.__name__} from flwr.serverapp.strategy"
        )
    raise TypeError(f"around must be FedAvg or a subclass of it, got {kind.__name__}")


def refuse_server_fn(*_: Any, **__: Any) -> NoReturn:
    """What Flower's old server calls first."""
    raise TypeError(
        "RobustStrategy is a strategy of Flower's Message API: in place of server_fn write @app.main() and call "
        "strategy.start(grid=grid, initial_arrays=arrays, num_rounds=...) there"
    )
