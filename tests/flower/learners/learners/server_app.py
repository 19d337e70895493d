"""The server. It says in the folder under which number its process can be killed, and in the log how it ended."""

from __future__ import annotations

import os
from pathlib import Path

from flwr.app import Array, ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp

from robagg.flower import RobustStrategy
from server.softmax import CLIENTS, evaluate, start

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train for as many rounds as the run says, or for those that are left."""
    folder = Path(str(context.run_config["folder"]))
    (folder / "pid").write_text(str(os.getpid()))
    strategy = RobustStrategy(
        "tq",
        f=2,
        log_file=folder / "rounds.jsonl",
        state_file=folder / "server.pt",
        fraction_evaluate=0.0,
        min_available_nodes=CLIENTS,
    )
    arrays = ArrayRecord({name: Array(value) for name, value in start().items()})
    result = strategy.start(grid, arrays, num_rounds=int(context.run_config["rounds"]), timeout=300)
    model = {name: array.numpy() for name, array in result.arrays.items()}
    print(f"test accuracy {evaluate(model, folder / 'digits.npz'):.4f}")
