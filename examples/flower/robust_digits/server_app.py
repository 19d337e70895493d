"""The server: FedAvg, or the same with a robust rule. The strategy is the only line that differs."""

from __future__ import annotations

import numpy as np
from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from robagg.flower import RobustStrategy
from robust_digits.task import build_model, evaluate, read_data

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train, and say how good the model is."""
    print(f"test accuracy {100 * train_all(grid, context):.2f}%")


def train_all(grid: Grid, context: Context) -> float:
    """Train for as many rounds as the run says; returns the accuracy of the last model."""
    config = context.run_config
    dataset, nodes = config["dataset"], int(config["min-nodes"])
    if config["rule"] == "fedavg":
        strategy = FedAvg(min_available_nodes=nodes)
    else:
        strategy = RobustStrategy(
            rule=str(config["rule"]),
            f=config["f"],
            log_file=config["log-file"] or None,
            state_file=config["state-file"] or None,
            max_skipped=int(config["max-skipped"]),
            min_available_nodes=nodes,
        )

    def evaluate_centrally(server_round: int, arrays: ArrayRecord) -> MetricRecord:
        model = build_model(dataset)
        model.load_state_dict(arrays.to_torch_state_dict())
        loss, accuracy = evaluate(model, read_data(dataset).test_x, read_data(dataset).test_y)
        return MetricRecord({"loss": loss, "accuracy": accuracy})

    result = strategy.start(
        grid=grid,
        initial_arrays=ArrayRecord(build_model(dataset).state_dict()),
        num_rounds=int(config["num-server-rounds"]),
        timeout=float(config["timeout"]),
        evaluate_fn=evaluate_centrally,
    )
    if config["model-file"]:
        np.savez(config["model-file"], **{name: array.numpy() for name, array in result.arrays.items()})
    return float(result.evaluate_metrics_serverapp[int(config["num-server-rounds"])]["accuracy"])
